#include "daemon/delivery/feed/feed_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace batchwright {
namespace {

/// A journal has no terms. Whether draws = 1 would continue it is found by trying that.
Error about_first_draws(const FeedSettings& settings, const FeedResources& resources, Error error) {
  if (error.code != ErrorCode::fingerprint_mismatch) return error;
  const auto first = fingerprint_of_first_draws(*resources.data.snapshot, settings);
  WorkQueue unused;
  if (first && open_journal(settings.journal.string(), *first, settings.follow, unused)) {
    error.message += fmt::format("; {}", kFirstDraws);
  }
  return error;
}

/// A journal of a build whose fingerprints covered the plan alone goes on under today's.
Result<OpenedJournal> open_queue(const FeedSettings& settings, FeedResources& resources) {
  const std::string path = settings.journal.string();
  const Fingerprint now = resources.data.first_epoch.source->fingerprint;
  auto journal = open_journal(path, now, settings.follow, resources.queue);
  const bool is_other = !journal && journal.error().code == ErrorCode::fingerprint_mismatch;
  if (!is_other || settings.recipe) return journal;  // there were no recipes then
  const Fingerprint older{now.data, settings_hash(settings.plan), now.seed};
  WorkQueue queue;  // the first attempt has filled the other
  auto again = open_journal(path, older, settings.follow, queue);
  if (!again) return journal;
  again->state.fingerprint.settings = now.settings;  // the file gets it with the next epoch
  resources.queue = std::move(queue);
  return again;
}

Result<void> open_files(const FeedSettings& settings, FeedResources& resources) {
  if (!settings.journal.empty()) {
    auto journal = open_queue(settings, resources);
    if (!journal) return about_first_draws(settings, resources, journal.error());
    resources.journal = std::move(journal->state);
    resources.files.journal = std::move(journal->file);
  }
  if (settings.ledger.empty()) return {};
  auto ledger = open_ledger(settings.ledger.string());
  if (!ledger) return ledger.error();
  resources.files.ledger = std::move(*ledger);
  return {};
}

/// The part of the memory at hand that a dataset's tree may take: what is left is for records.
constexpr std::size_t kTreePart = 8;

/// From the start on, so that it is done, or far on, when the first batch is assembled. Without it
/// look-ups wait: nothing worse.
std::shared_ptr<const std::jthread> read_tree(std::shared_ptr<const Snapshot> snapshot) {
  auto thread = start_thread("bw-tree", [snapshot = std::move(snapshot)](const auto& stop) {
    snapshot->bring_in_tree(memory_room().available / kTreePart, stop);
  });
  return thread ? std::make_shared<std::jthread>(std::move(*thread)) : nullptr;
}

/// An order file's rows once with each of the lengths that their sequences may have.
Result<OrderRows> with_each_length(const OrderRows& order, std::uint64_t sequences,
                                   std::size_t lengths) {
  if (lengths * std::max<std::uint64_t>(sequences, order.rows.size()) >= ListedRow::kNone) {
    return Error{ErrorCode::infeasible,
                 fmt::format("order file {}: {} rows of {} sequences with up to {} lengths each "
                             "pass what can be planned, 4294967294",
                             order.file, order.rows.size(), sequences, lengths)};
  }
  OrderRows all = order;
  for (std::size_t i = 1; i < lengths; ++i) {
    const auto rows = static_cast<std::uint32_t>(all.rows.size());
    for (ListedRow row : order.rows) {
      row.ordinal += row.has_sequence() ? static_cast<std::uint32_t>(i * sequences) : 0;
      all.rows.push_back(row);
    }
    all.weights.insert(all.weights.end(), order.weights.begin(), order.weights.end());
    for (std::size_t line = 0; line < order.lines(); ++line) {
      all.line_starts.push_back(rows + order.line_starts[line + 1]);
      all.line_numbers.push_back(order.line_numbers[line]);
    }
  }
  return all;
}

/// The bound of an order file's rows where a sequence may have several lengths; `longest` is the
/// bound where each has its longest.
Result<PlanBound> listed_bound(const std::vector<SharedLengths>& possible, PlanSettings plan,
                               const PlanBound& longest) {
  std::vector<std::uint32_t> all, shortest = *possible.front();
  for (const SharedLengths& lengths : possible) {
    all.insert(all.end(), lengths->begin(), lengths->end());
    std::transform(lengths->begin(), lengths->end(), shortest.begin(), shortest.begin(),
                   [](std::uint32_t one, std::uint32_t other) { return std::min(one, other); });
  }
  // A row has to have frames, and a part to lie within its sequence, whatever is drawn.
  if (auto bound = plan_bound(shortest, plan); !bound || plan.cut == Cut::file) {
    return bound ? longest : bound;
  }
  auto order = with_each_length(*plan.order_rows, shortest.size(), possible.size());
  if (!order) return order.error();
  plan.order_rows = std::make_shared<const OrderRows>(*std::move(order));
  return plan_bound(all, plan);
}

/// The bound where a sequence may have several lengths: as if it were there once with each.
Result<PlanBound> made_bound(const Snapshot& snapshot, const FeedSettings& settings) {
  const auto possible = settings.recipe->possible_lengths(snapshot);
  if (!possible) return possible.error();
  const PlanSettings plan = plan_of_made(settings);
  const auto shards = snapshot.shard_sequences();
  if (possible->size() == 1) return plan_bound(*possible->front(), plan, shards);
  // What is wrong is said of the sequences, each of them counted once, by its longest.
  std::vector<std::uint32_t> longest(snapshot.sequences());
  for (const SharedLengths& lengths : *possible) {
    std::transform(lengths->begin(), lengths->end(), longest.begin(), longest.begin(),
                   [](std::uint32_t one, std::uint32_t other) { return std::max(one, other); });
  }
  const auto bound = plan_bound(longest, plan, shards);
  if (!bound) return bound;
  if (plan.order == Order::file) return listed_bound(*possible, plan, *bound);
  std::vector<std::uint32_t> all;
  std::vector<std::uint64_t> counts;
  std::size_t first = 0;
  for (const std::uint64_t count : shards) {
    for (const SharedLengths& lengths : *possible) {
      const auto begin = lengths->begin() + static_cast<std::ptrdiff_t>(first);
      all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    counts.push_back(count * possible->size());
    first += count;
  }
  return plan_bound(all, plan, counts);
}

/// Below that ranks would wait for each other without end: it is refused, with what fits.
std::uint32_t least_slots(const FeedSettings& settings) {
  return settings.slots != 0 ? settings.slots : std::max<std::uint32_t>(2, settings.plan.world + 1);
}

}  // namespace

Result<void> open_recipe(Dataset& dataset, FeedSettings& settings, Catalog& catalog) {
  if (!asks_anything(settings.features)) return {};
  const auto snapshot = dataset.snapshot();
  if (!snapshot) return snapshot.error();
  return open_recipe(**snapshot, settings, catalog);
}

Result<void> open_recipe(const Snapshot& snapshot, FeedSettings& settings, Catalog& catalog) {
  if (!asks_anything(settings.features)) return {};
  auto recipe = Recipe::open(settings.features, snapshot, settings.plan.seed, catalog);
  if (!recipe) {
    return Error{recipe.error().code, fmt::format("features: {}", recipe.error().message)};
  }
  settings.recipe = *std::move(recipe);
  settings.row_budget = std::make_shared<MemoryBudget>(settings.row_cache_bytes);
  return {};
}

Result<std::size_t> feed_slot_bytes(const Snapshot& snapshot, const FeedSettings& settings) {
  const auto bound =
      settings.recipe ? made_bound(snapshot, settings)
                      : plan_bound(snapshot.lengths(), settings.plan, snapshot.shard_sequences());
  if (!bound) return bound.error();
  return slot_bytes_for(snapshot,
                        {settings.name, settings.layout, settings.padding, settings.on_corrupt,
                         nullptr, settings.casts, settings.recipe},
                        *bound);
}

bool has_row_cache(const FeedSettings& settings) {
  return settings.recipe && settings.row_cache_bytes != 0 && makes_parts(settings.plan);
}

/// Of all rows, where batches take parts of them.
std::uint64_t all_row_bytes(const Snapshot& snapshot, const FeedSettings& settings) {
  if (!has_row_cache(settings)) return 0;
  const Recipe* const recipe = settings.recipe.get();
  std::uint64_t frames = 0;
  const auto possible = recipe->possible_lengths(snapshot);
  for (const SharedLengths& lengths : possible ? *possible : std::vector<SharedLengths>{}) {
    frames = std::max(frames, std::accumulate(lengths->begin(), lengths->end(), std::uint64_t{0}));
  }
  return frames * recipe->frame_bytes();
}

void claim_row_cache(const FeedSettings& settings, const std::shared_ptr<MemoryBudget>& memory,
                     FeedData& data) {
  const std::uint64_t wanted =
      std::min(settings.row_cache_bytes, all_row_bytes(*data.snapshot, settings));
  // Another thread may take some of what is left in between.
  while (wanted != 0 && !data.row_cache && memory->left() != 0) {
    data.row_cache = claim_memory(memory, std::min(wanted, memory->left()), settings.name);
  }
  if (settings.row_budget && wanted != 0) {
    settings.row_budget->set_left(bytes_of(data.row_cache));
  }
}

std::uint64_t making_bytes(const Snapshot& snapshot, const FeedSettings& settings) {
  if (!settings.recipe) return 0;
  return settings.assembly_threads * settings.recipe->thread_bytes(snapshot) +
         settings.recipe->kept_bytes();
}

std::uint32_t feed_slots(const FeedSettings& settings, std::size_t slot_bytes,
                         std::uint64_t memory_bytes) {
  if (settings.slots != 0) return settings.slots;
  const std::uint64_t most = memory_bytes / slot_bytes;
  const std::uint32_t least = least_slots(settings);
  const std::uint32_t suited = suited_slots(settings.plan.world);
  return most < least ? least : static_cast<std::uint32_t>(std::min<std::uint64_t>(suited, most));
}

std::string about_slots(const FeedSettings& settings, std::uint32_t slots) {
  const std::uint32_t suited = suited_slots(settings.plan.world);
  if (settings.slots != 0 || slots >= suited) return "";
  return fmt::format("{} slots, as many as the memory ceiling leaves; {} would suit world = {}",
                     slots, suited, settings.plan.world);
}

Result<FeedNeeds> feed_needs(const Snapshot& snapshot, const FeedSettings& settings) {
  if (snapshot.sequences() == 0) {
    return Error{ErrorCode::store_unavailable, "the dataset has no sequences"};
  }
  const Schema& rows = row_schema(snapshot, settings.recipe.get());
  if (auto sound = check_casts(settings.casts, rows); !sound) return sound.error();
  // Padding is written as clients see it, so it has to fit what the field is cast to.
  const Schema schema = cast_schema(settings.casts, rows);
  if (auto sound = check_padding(settings.padding, schema); !sound) {
    return sound.error();
  }
  const auto bytes = feed_slot_bytes(snapshot, settings);
  if (!bytes) return bytes.error();
  return FeedNeeds{least_slots(settings), whole_pages(*bytes), making_bytes(snapshot, settings)};
}

Result<void> choose_slots(const FeedSettings& settings, std::uint64_t memory_bytes,
                          FeedNeeds& needs) {
  const std::uint64_t making = needs.making_bytes;
  const std::uint64_t left = memory_bytes - std::min(making, memory_bytes);
  needs.slots = feed_slots(settings, needs.slot_bytes, left);
  if (making <= memory_bytes && needs.arena_bytes() <= left) return {};
  const std::string made =
      making == 0     ? ""
      : settings.live ? fmt::format(" and its pool {}", in_mib(making))
                      : fmt::format(
                            " and making its rows {} ({} threads, by its longest sound, and what "
                            "is kept of noise and rooms)",
                            in_mib(making), settings.assembly_threads);
  return Error{
      ErrorCode::does_not_fit,
      fmt::format("its arena needs {} ({} slots of {}){}, the memory ceiling leaves {}; {} slots "
                  "would fit",
                  in_mib(needs.arena_bytes()), needs.slots, in_mib(needs.slot_bytes), made,
                  in_mib(memory_bytes), left / needs.slot_bytes)};
}

Result<void> check_can_follow(const Dataset& dataset, const FeedSettings& settings) {
  if (!settings.follow || dataset.lock() == MapLock::slot) return {};
  return Error{
      ErrorCode::store_unavailable,
      fmt::format("follow = true needs a lock on the dataset, so that writers do not write over "
                  "what is read; lock.mdb of {} must be writable (under systemd: "
                  "ReadWritePaths=), and lock = true",
                  dataset.shards().front().string())};
}

Result<FeedResources> make_resources(std::shared_ptr<Dataset> dataset, PlannedEpoch first,
                                     const FeedSettings& settings, const FeedNeeds& needs,
                                     const std::stop_token& stop) {
  const std::shared_ptr<const Snapshot> snapshot = first.source->snapshot;
  auto tree_reader = read_tree(snapshot);
  auto arena = Arena::create(needs.slots, needs.slot_bytes, settings.huge_pages, stop);
  if (!arena) return arena.error();
  FeedResources resources;
  resources.data = {snapshot, std::move(first), std::move(dataset), std::move(tree_reader)};
  resources.data.few_slots = about_slots(settings, needs.slots);
  resources.arena = std::move(*arena);
  if (auto opened = open_files(settings, resources); !opened) return opened.error();
  return resources;
}

Result<FeedResources> prepare_feed(std::shared_ptr<Dataset> dataset, const FeedSettings& settings,
                                   std::uint64_t memory_bytes, const std::stop_token& stop) {
  if (auto can = check_can_follow(*dataset, settings); !can) return can.error();
  auto snapshot = dataset->snapshot();
  if (!snapshot) return snapshot.error();
  auto needs = feed_needs(**snapshot, settings);
  if (!needs) return needs.error();
  if (auto fits = choose_slots(settings, memory_bytes, *needs); !fits) return fits.error();
  auto first = plan_snapshot(std::move(*snapshot), settings, Epoch{0});
  if (!first) return first.error();
  return make_resources(std::move(dataset), std::move(*first), settings, *needs, stop);
}

}  // namespace batchwright
