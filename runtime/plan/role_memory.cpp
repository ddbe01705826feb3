#include "runtime/plan/role_memory.hpp"

#include <algorithm>
#include <bit>

namespace troupe::plan {
namespace {

constexpr std::int64_t kF32_bytes = 4;
constexpr std::int64_t kStaging_bytes = 16 << 20;  // of ranks, for each kind of piece
constexpr std::int64_t kWindow_bytes = 1 << 20;    // from one rank to another
constexpr std::int64_t kSnapshots = 2;  // that are reused in turn; a third while a receiver is slow
// Logits of one batch of draws: on a device, and on the host, where rows are between two bounds.
constexpr std::int64_t kDeviceDraws_bytes = std::int64_t{1} << 29;
constexpr std::int64_t kHostDraws_bytes = 32 << 20;
constexpr std::int64_t kHostDraws_rows_min = 8, kHostDraws_rows_max = 64;
// Copies of the adapters: values, scaled, and panels for three products.
constexpr std::int64_t kAdapterCopies = 4;

std::int64_t floor_log2(std::int64_t count) {
  return std::bit_width(static_cast<std::uint64_t>(count)) - 1;
}

std::int64_t kv_bytes(kernels::PanelDtype panels, const Place& place) {
  return kernels::bytes_of(kernels::kv_dtype_of(panels, place.on_host));
}

}  // namespace

MemoryUse TrainerFacts::memory(const Place& place) const {
  MemoryUse use;
  add_weights(use, place);
  add_gradients(use);
  add_panels(use);
  add_staging(use, place);
  add_rows(use, place);
  add_snapshots(use, place);
  use.add(Kind::kContext, place.on_host ? kHostTrainerContext_bytes : kTrainerContext_bytes);
  return use;
}

void TrainerFacts::add_weights(MemoryUse& use, const Place& place) const {
  const std::int64_t adapters = adapted > 0 ? kAdapterCopies * trained : 0;
  const std::int64_t master = kF32_bytes * (model->weights() + adapted + adapters);
  const std::int64_t moments = moment_bytes * trained;
  const std::int64_t own_moments = ranks.zero_stage >= 1 ? ranks.shard(moments) : moments;
  const std::int64_t own_master = divided() ? ranks.shard(master) : master;
  if (offloads()) {
    use.add_on_host(Kind::kMaster, own_master);
    use.add_on_host(Kind::kMoments, own_moments);
  } else {
    use.add(Kind::kMaster, own_master);
    use.add(Kind::kMoments, own_moments);
  }
  if (!average) return;
  // On the host always; on its way from a device there are two.
  const std::int64_t copies = kF32_bytes * model->weights();
  if (place.on_host) {
    use.add(Kind::kAverage, copies);
  } else {
    use.add_on_host(Kind::kAverage, 2 * copies);
  }
}

void TrainerFacts::add_gradients(MemoryUse& use) const {
  const std::int64_t gradient = kF32_bytes * trained;
  // Only the owner of a block has its sum; at stage 0 all get the whole besides.
  if (ranks.count > 1) use.add(Kind::kGradients, ranks.shard(gradient));
  if (ranks.count == 1 || ranks.zero_stage == 0) use.add(Kind::kGradients, gradient);
  if (lanes == 1) return;
  // A rank's own lanes come one after another; sums of subtrees wait for their siblings.
  const std::int64_t waiting = floor_log2((lanes + ranks.count - 1) / ranks.count);
  // With a lane for each rank, divided weights ship its gradient part by part.
  const bool on_the_way = divided() && lanes <= ranks.count;
  const std::int64_t lane =
      on_the_way ? kF32_bytes * std::min(model->part_room(), trained) : gradient;
  use.add(Kind::kPartials, lane + waiting * gradient);
}

void TrainerFacts::add_panels(MemoryUse& use) const {
  const std::int64_t whole = model->panel_bytes(panels);
  const std::int64_t values = kF32_bytes * model->part_room();
  if (reference) use.add(Kind::kReference, reference->panel_bytes(panels));
  for (const auto& teacher : teachers)
    use.add(Kind::kReference, teacher->panel_bytes(panels));
  if (divided()) {
    // One layer at a time: master values, which the backward pass reads, and panels.
    const auto width = static_cast<std::int64_t>(kernels::bytes_of_weight(panels));
    use.add(Kind::kGathered, values + model->largest_part() * width);
    return;
  }
  use.add(Kind::kPanels, whole);
  if (shares_panels) use.add(Kind::kSparePanels, whole);
  if (offloads()) use.add(Kind::kGathered, values);
}

// What gradients are packed into and come in by (learn::LaneExchange), the same of weights
// (learn::ShardMover), and the windows of a host's shared memory to and from each other rank.
void TrainerFacts::add_staging(MemoryUse& use, const Place& place) const {
  if (ranks.count == 1) return;
  const std::int64_t gradient = kF32_bytes * trained;
  const std::int64_t part = std::min(kF32_bytes * model->largest_part(), gradient);
  const std::int64_t shipped = divided() ? part : gradient;
  std::int64_t staging = std::min(kStaging_bytes, 2 * shipped);
  const std::int64_t piece = std::min(kStaging_bytes, gradient);
  staging += divided() ? std::min(kStaging_bytes, part) : piece;
  if (trained < model->weights()) staging += piece;  // neighbours of what is trained
  use.add(Kind::kStaging, place.grown(staging));
  const std::int64_t windows = 2 * (ranks.count - 1) * kWindow_bytes;
  if (place.on_host) use.add(Kind::kStaging, windows);
  if (!place.on_host) use.add_on_host(Kind::kStaging, windows);
}

void TrainerFacts::add_rows(MemoryUse& use, const Place& place) const {
  const TrainRows train{*model, rows, trained_layers, checkpointing};
  const ForwardRows forward{*model, rows};
  // The ranks of a host share its cores.
  const std::int64_t members =
      place.on_host ? std::max<std::int64_t>(place.members / ranks.count, 1) : 1;
  std::int64_t activations = train.kept() + train.scratch() + members * train.members_scratch();
  std::int64_t logits = train.logits(place);
  if (scores) {
    activations += forward.scratch() + forward.keys();
    logits += forward.logits();
  }
  use.add(Kind::kActivations, place.grown(kF32_bytes * activations));
  use.add(Kind::kLogits, place.grown(kF32_bytes * logits));
}

void TrainerFacts::add_snapshots(MemoryUse& use, const Place& place) const {
  if (!publishes) return;
  const std::int64_t bytes = kSnapshots * ranks.shard(image());
  // Several ranks serve their shares from the host. A single one has snapshots in both memories,
  // for every path.
  if (ranks.count == 1 || place.on_host) use.add(Kind::kSnapshots, bytes);
  if (!place.on_host) use.add_on_host(Kind::kSnapshots, bytes);
}

std::int64_t TrainerFacts::image() const {
  return model->image_bytes(panels);
}

std::int64_t EngineFacts::keys_bytes(const Place& place) const {
  const std::int64_t block =
      kernels::kKvBlock * model->token_bytes(kernels::kv_dtype_of(panels, place.on_host));
  const std::int64_t of_sequence =
      (model->spec().context + kernels::kKvBlock - 1) / kernels::kKvBlock;
  return block * std::min(keys_bytes_max / block, sequences * of_sequence);
}

std::int64_t EngineFacts::draws_bytes(const Place& place) const {
  const std::int64_t row = kF32_bytes * model->logits_width();
  const std::int64_t fit = (place.on_host ? kHostDraws_bytes : kDeviceDraws_bytes) / row / 8 * 8;
  const std::int64_t least = place.on_host ? kHostDraws_rows_min : 1;
  const std::int64_t most = place.on_host ? kHostDraws_rows_max : sequences;
  return row * std::clamp(fit, std::min(least, sequences), std::min(most, sequences));
}

MemoryUse EngineFacts::memory(const Place& place) const {
  MemoryUse use;
  const std::int64_t whole = model->panel_bytes(panels);
  if (!shares_panels) {
    use.add(Kind::kPanels, whole);
    use.add(Kind::kSparePanels, whole);
  }
  use.add_on_host(Kind::kSnapshots, image);
  use.add(Kind::kKeys, keys_bytes(place));
  const ForwardRows rows{*model, step_rows};
  use.add(Kind::kActivations, place.grown(kF32_bytes * rows.scratch()));
  use.add(Kind::kLogits, draws_bytes(place));
  if (!place.on_host) {
    use.add(Kind::kContext, kEngineContext_bytes);
  } else if (!shares_panels) {
    use.add(Kind::kContext, kHostContext_bytes);
  }
  return use;
}

MemoryUse ScorerFacts::memory(const Place& place) const {
  MemoryUse use;
  use.add(Kind::kPanels, model->panel_bytes(panels));
  const ForwardRows forward{*model, rows};
  use.add(Kind::kActivations,
          place.grown(kF32_bytes * forward.scratch() + kv_bytes(panels, place) * forward.keys()));
  use.add(Kind::kLogits, place.grown(kF32_bytes * forward.logits()));
  if (!place.on_host) {
    use.add(Kind::kContext, kEngineContext_bytes);
  } else if (own_process) {
    use.add(Kind::kContext, kHostContext_bytes);
  }
  return use;
}

}  // namespace troupe::plan
