#pragma once

#include "client/library/batchwright/client.h"
#include "client/library/ids.h"
#include "formats/formats.h"

namespace batchwright {

// The library's values as the C ABI shows them, and back. Only the files of the border use them.

inline bw_fingerprint to_c(const Fingerprint& plan) {
  return {plan.data, plan.settings, plan.seed};
}

inline Fingerprint from_c(const bw_fingerprint& plan) {
  return {plan.data, plan.settings, plan.seed};
}

inline bw_position to_c(const Position& position) {
  return {to_c(position.plan), position.epoch, position.step};
}

/// `certain`: no other worker can get it.
inline bw_upcoming to_c(const wire::UpcomingBatch& batch, bool certain) {
  return {batch.epoch(),
          batch.step(),
          batch.index(),
          batch.frames(),
          batch.rows(),
          batch.length(),
          batch.rehearsal() ? 1U : 0,
          certain ? 1U : 0};
}

inline bw_grant to_c(const Grant& grant) {
  return {to_c(grant.first.plan),
          grant.first.epoch,
          grant.first.step,
          grant.steps,
          grant.batches_per_step,
          grant.world,
          grant.rank,
          grant.ranks,
          grant.window};
}

}  // namespace batchwright
