#pragma once

// Front door of the room: sound in files, at other rates and speeds, and on the telephone.

#include "storage/features/sound/audio.h"      // files decoded, on the disk and in memory
#include "storage/features/sound/libraries.h"  // what a minimal build lacks
#include "storage/features/sound/resampler.h"  // other rates, and speed perturbation
#include "storage/features/sound/telephone.h"  // G.711
