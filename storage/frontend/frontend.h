#pragma once

// Front door of the room: features of sound, and what is done with sound before them and with
// frames behind. Pure: memory in, memory out.

#include "storage/frontend/augment/draws.h"         // random numbers that belong to a row
#include "storage/frontend/augment/noise.h"         // noise and gain
#include "storage/frontend/augment/room.h"          // reverberation
#include "storage/frontend/augment/samples.h"       // dither, whole samples
#include "storage/frontend/augment/spec_augment.h"  // masks and warps
#include "storage/frontend/frames/aligned.h"        // fields that go along with frames
#include "storage/frontend/frames/cmvn.h"           // mean and variance
#include "storage/frontend/frames/deltas.h"         // slopes
#include "storage/frontend/frames/stacking.h"       // frames side by side, and left out
#include "storage/frontend/front_end.h"             // the conventions
#include "storage/frontend/lengths.h"               // how long a sequence is after each step
