#pragma once

// Front door of the room: sound in files, at other rates and speeds, and on the telephone.

#include "storage/sound/audio.h"      // files decoded, on the disk and in memory
#include "storage/sound/libraries.h"  // what a minimal build lacks
#include "storage/sound/resampler.h"  // other rates, and speed perturbation
#include "storage/sound/telephone.h"  // G.711
