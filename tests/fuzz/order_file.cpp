// Order files: any text, for sequences with keys and for some without, and a small plan of what was
// accepted.

#include <cmath>
#include <string>

#include "daemon/planning/planning.h"
#include "tests/fuzz/fuzz.h"

using namespace batchwright;
using namespace batchwright::fuzz;

namespace {

const std::vector<std::uint32_t> kLengths = {1, 2, 3, 5, 8, 13, 21, 34};

/// Keys are one letter, a to h.
Result<std::optional<std::uint64_t>> find(std::string_view key) {
  if (key.size() != 1 || key[0] < 'a' || key[0] > 'h') return std::optional<std::uint64_t>();
  return std::optional<std::uint64_t>(key[0] - 'a');
}

/// The same rows, by ordinal.
std::string text_of(const OrderRows& order) {
  std::string text;
  for (std::size_t line = 0; line < order.lines(); ++line) {
    for (std::uint32_t i = order.line_starts[line]; i < order.line_starts[line + 1]; ++i) {
      const ListedRow& row = order.rows[i];
      if (i != order.line_starts[line]) text += '\t';
      if (!row.has_sequence()) {
        text += '-';
        continue;
      }
      text += '#' + std::to_string(row.ordinal);
      if (row.frames != 0) {
        text += ' ' + std::to_string(row.start) + ' ' + std::to_string(row.frames);
      }
      if (!order.weights.empty()) text += " *" + real_text(order.weights[i]);
    }
    text += '\n';
  }
  return text;
}

void check_plan(OrderRows order, Cut cut) {
  PlanSettings settings;
  settings.order = Order::file;
  settings.order_file = "o";
  settings.cut = cut;
  const std::size_t rows = order.rows.size();
  settings.order_rows = std::make_shared<const OrderRows>(std::move(order));
  const auto plan = plan_epoch(kLengths, settings, Epoch{0});
  const auto bound = plan_bound(kLengths, settings);
  require(plan.has_value() == bound.has_value(), "what has a plan has a bound");
  if (!plan) return require(!plan.error().message.empty(), "there is a plan, or a reason");
  std::size_t planned = 0;
  for (std::uint64_t index = 0; index < plan->batches(); ++index) {
    const BatchFigures batch = plan->figures(BatchIndex{index});
    planned += batch.rows;
    require(batch.rows <= bound->rows, "the bound of rows holds");
    require(std::uint64_t{batch.rows} * batch.batch_length <= bound->padded_frames,
            "the bound of frames holds");
  }
  require(planned == rows, "each row of the file is in the plan");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto without = parse_order(text, "o", {kLengths.size(), nullptr});
  auto order = parse_order(text, "o", {kLengths.size(), find});
  if (!order) {
    require(order.error().code == ErrorCode::bad_configuration, "a fault is bad_configuration");
    require(order.error().message.starts_with("order file o"), "a fault names the file");
    return 0;
  }
  const auto again = parse_order(text_of(*order), "o", {kLengths.size(), nullptr});
  require(again.has_value(), "rows by ordinal are accepted");
  require(again->line_hash == order->line_hash, "they are the same rows");
  require(!without || without->line_hash == order->line_hash,
          "what is accepted without keys means the same with them");
  for (const float weight : order->weights) require(std::isfinite(weight), "a weight is finite");
  check_plan(*order, Cut::fixed);
  check_plan(*std::move(order), Cut::file);
  return 0;
}
