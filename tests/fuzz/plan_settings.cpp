// Planning settings as text, "name value" a line, and a small plan made with what was accepted.

#include <numeric>
#include <string>

#include "daemon/planning/planning.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

/// Text that is given back must mean the same when it is set.
void check_text(const PlanSettings& settings) {
  PlanSettings copy;
  for (const SettingRow& row : setting_rows()) {
    const std::string value = get_setting(settings, row.name);
    if (value.empty()) continue;
    require(set_setting(copy, row.name, value).has_value(), "a setting's own text is accepted");
    require(get_setting(copy, row.name) == value, "a setting's own text means the same");
  }
}

/// Settings that were found sound give a plan, or a reason why there is none.
void check_plan(const PlanSettings& settings) {
  const std::vector<std::uint32_t> lengths = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 7, 7, 7, 40, 12, 9};
  const auto plan = plan_epoch(lengths, settings, Epoch{1});
  require(plan || !plan.error().message.empty(), "there is a plan, or a reason");
  if (plan) require(plan->world() == settings.world, "a plan has the world that was asked for");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 512) return 0;  // an unknown name is compared with all others, letter by letter
  std::string_view text(reinterpret_cast<const char*>(data), size);
  PlanSettings settings;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string_view name = line.substr(0, line.find(' '));
    const auto value = line.substr(std::min(line.size(), name.size() + 1));
    const auto set = set_setting(settings, name, value);
    require(set || set.error().code == ErrorCode::bad_configuration,
            "a setting's error is bad_configuration");
  }
  check_text(settings);
  if (check_settings(settings)) check_plan(settings);
  return 0;
}
