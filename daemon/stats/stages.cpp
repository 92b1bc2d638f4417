#include "daemon/stats/stages.h"

#include <cstddef>

namespace batchwright {
namespace {

// In the order of the enumeration.
constexpr std::array<StageRow, kStages> kStageRows{{
    {"readahead", "looking up what is to be read for one batch"},
    {"fetch", "bringing the pages of one batch into memory, where they are not known to be there"},
    {"assemble", "building one batch in its slot, waiting for its data included"},
    {"wait_for_slot", "from wanting to build the next batch to having a slot for it"},
    {"deliver", "journal, ledger and ticket of one delivery; over a network also the sending"},
}};

constexpr std::array<StageRow, kMakeSteps> kMakeRows{{
    {"decode", "reading and decoding sound"},
    {"resample", "changing its rate and speed"},
    {"reverberation", "putting it into rooms"},
    {"noise", "adding noise and dither, and gain"},
    {"telephone", "sending it through a telephone"},
    {"features", "making features of it"},
    {"frames", "what is done with frames of features"},
}};
static_assert(!kMakeRows.back().name.empty(), "every step has a row");

}  // namespace

const StageRow& describe(MakeStep step) { return kMakeRows.at(static_cast<std::size_t>(step)); }

const StageRow& describe(Stage stage) { return kStageRows.at(static_cast<std::size_t>(stage)); }

}  // namespace batchwright
