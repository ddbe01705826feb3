// What one rank of a trainer, one engine and one scorer take. Each is plain facts of a role; memory
// follows from them by the formulas of docs/scale.md. Value types, pure functions.
#pragma once

#include "runtime/plan/memory_use.hpp"
#include "runtime/plan/row_sizes.hpp"

#include <cstdint>
#include <memory>

namespace troupe::plan {

// What a process takes before it has a model. Of a GPU: the driver, LibTorch and what collectives
// buffer, assumed (docs/scale.md). Of the host: measured (docs/plan.md).
inline constexpr std::int64_t kTrainerContext_bytes = 1'500'000'000;
inline constexpr std::int64_t kEngineContext_bytes = 2'000'000'000;
inline constexpr std::int64_t kHostTrainerContext_bytes = 67'000'000;
inline constexpr std::int64_t kHostContext_bytes = 6'000'000;

// How a trainer is spread over ranks. Stage 0 shards nothing, 1 the moments, 2 the gradients as
// well, 3 the weights as well. `offload`: master weights and moments lie on the host, unless
// adapters are trained.
struct Ranks {
  std::int64_t count = 1;
  std::int64_t zero_stage = 0;
  bool offload = false;

  std::int64_t shard(std::int64_t bytes) const { return (bytes + count - 1) / count; }
};

struct TrainerFacts {
  std::shared_ptr<const ModelSizes> model;
  std::shared_ptr<const ModelSizes> reference;  // frozen, in the same process; null: none
  std::vector<std::shared_ptr<const ModelSizes>> teachers = {};  // the same
  kernels::PanelDtype panels = kernels::PanelDtype::kF32;
  std::int64_t trained = 0;       // elements that the optimiser changes
  std::int64_t moment_bytes = 8;  // of the optimiser, for each of them
  std::int64_t adapted = 0;       // elements under adapters, which are kept next to the merged ones
  std::int64_t trained_layers = 0;  // those that have a backward pass
  bool checkpointing = false;
  std::int64_t rows = 0;  // of a micro-batch
  std::int64_t lanes = 1;
  Ranks ranks;
  bool scores = false;         // also computes log-probs or values without gradients
  bool publishes = false;      // engines in other processes get its weights
  bool shares_panels = false;  // engines in this process read its panels
  bool average = false;
  bool fixed = false;  // a critic: no key changes its panels
  MemoryUse memory(const Place& place) const;
  // Bytes of a version of the weights on its way to engines: f32 from a single rank, in the panels'
  // type from several.
  std::int64_t image() const;

 private:
  bool offloads() const { return ranks.offload && adapted == 0; }
  // Stage 3 of a model that is trained as a whole; else it is stage 2.
  bool divided() const { return ranks.zero_stage >= 3 && trained == model->weights(); }
  void add_weights(MemoryUse& use, const Place& place) const;
  void add_gradients(MemoryUse& use) const;
  void add_panels(MemoryUse& use) const;
  void add_staging(MemoryUse& use, const Place& place) const;
  void add_rows(MemoryUse& use, const Place& place) const;
  void add_snapshots(MemoryUse& use, const Place& place) const;
};

struct EngineFacts {
  std::shared_ptr<const ModelSizes> model;
  kernels::PanelDtype panels = kernels::PanelDtype::kF32;
  std::int64_t keys_bytes_max = 0;  // bound of the memory for keys and values
  std::int64_t sequences = 0;       // running at once
  std::int64_t step_rows = 0;
  bool shares_panels = false;       // reads those of a trainer in its process
  std::int64_t image = 0;           // bytes of a version fetched from another host; 0: same host
  std::int64_t keys_bytes_min = 0;  // need of the longest group
  std::int64_t at_once = 0;         // samples that run together, all of them of the longest
  // Bytes for keys and values: as many blocks as the bound holds and the sequences can use.
  std::int64_t keys_bytes(const Place& place) const;
  // Bytes for the logits of one batch of draws.
  std::int64_t draws_bytes(const Place& place) const;
  MemoryUse memory(const Place& place) const;
};

// A reference or a learned reward.
struct ScorerFacts {
  std::shared_ptr<const ModelSizes> model;
  kernels::PanelDtype panels = kernels::PanelDtype::kF32;
  std::int64_t rows = 0;  // of a micro-batch
  bool own_process = true;
  bool fixed = false;  // a reward: no key changes its panels
  MemoryUse memory(const Place& place) const;
};

}  // namespace troupe::plan
