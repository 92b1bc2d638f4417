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

}  // namespace

const StageRow& describe(Stage stage) { return kStageRows.at(static_cast<std::size_t>(stage)); }

}  // namespace batchwright
