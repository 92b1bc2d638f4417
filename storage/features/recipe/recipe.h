#pragma once

// Front door of the room: what becomes of stored sequences on their way into a batch.

#include "storage/features/recipe/draw_keys.h"           // what the draws of a row depend on
#include "storage/features/recipe/gather.h"              // statistics of a dataset
#include "storage/features/recipe/opened_recipe.h"       // lengths and fields of the rows
#include "storage/features/recipe/row_maker.h"           // one row
#include "storage/features/recipe/sources/statistics.h"  // sums for CMVN
#include "storage/features/recipe/steps/settings.h"      // what people ask for
#include "storage/features/recipe/verify_sound.h"  // whether stored files decode to what is said
