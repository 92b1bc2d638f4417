#pragma once

// Front door of the room: features of sound, and what is done with sound before them and with
// frames behind. Pure: memory in, memory out.

#include "storage/features/frontend/augment/draws.h"         // random numbers that belong to a row
#include "storage/features/frontend/augment/noise.h"         // noise and gain
#include "storage/features/frontend/augment/room.h"          // reverberation
#include "storage/features/frontend/augment/samples.h"       // dither, whole samples
#include "storage/features/frontend/augment/spec_augment.h"  // masks and warps
#include "storage/features/frontend/frames/aligned.h"        // fields that go along with frames
#include "storage/features/frontend/frames/cmvn.h"           // mean and variance
#include "storage/features/frontend/frames/deltas.h"         // slopes
#include "storage/features/frontend/frames/stacking.h"       // frames side by side, and left out
#include "storage/features/frontend/front_end.h"             // the conventions
#include "storage/features/frontend/lengths.h"  // how long a sequence is after each step
