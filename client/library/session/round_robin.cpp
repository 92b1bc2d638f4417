#include "client/library/session/round_robin.h"

#include <algorithm>

namespace batchwright {
namespace {

/// The sum over all servers of the steps within r rounds of turns.
std::uint64_t steps_of_rounds(const std::vector<std::uint64_t>& steps, std::uint64_t rounds) {
  std::uint64_t sum = 0;
  for (const std::uint64_t one : steps) sum += std::min(one, rounds);
  return sum;
}

}  // namespace

Fingerprint combined(const std::vector<Fingerprint>& plans) {
  const std::uint64_t start = fnv1a(kFnv1aBasis, plans.size());
  Fingerprint all{start, start, start};
  for (const Fingerprint& plan : plans) {
    all.data = fnv1a(all.data, plan.data);
    all.settings = fnv1a(all.settings, plan.settings);
    all.seed = fnv1a(all.seed, plan.seed);
  }
  return all;
}

std::uint64_t total_steps(const std::vector<std::uint64_t>& steps) {
  return steps_of_rounds(steps, UINT64_MAX);
}

std::optional<RoundRobin> round_robin_after(std::uint64_t merged_steps,
                                            const std::vector<std::uint64_t>& steps) {
  if (total_steps(steps) < merged_steps) return std::nullopt;
  // The most whole rounds that fit; a round has at least one step until all are over.
  std::uint64_t rounds = 0;
  std::uint64_t too_many = *std::max_element(steps.begin(), steps.end()) + 1;
  while (too_many - rounds > 1) {
    const std::uint64_t middle = rounds + (too_many - rounds) / 2;
    (steps_of_rounds(steps, middle) <= merged_steps ? rounds : too_many) = middle;
  }
  RoundRobin turns;
  std::uint64_t rest = merged_steps - steps_of_rounds(steps, rounds);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool goes_on = steps[i] > rounds && rest != 0;
    turns.done.push_back(std::min(steps[i], rounds) + (goes_on ? 1 : 0));
    if (!goes_on) continue;
    --rest;
    turns.next = (i + 1) % steps.size();
  }
  return turns;
}

}  // namespace batchwright
