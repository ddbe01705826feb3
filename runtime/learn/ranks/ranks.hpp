// What a trainer needs to be one of R ranks that train one model (docs/adr/0022-ranks.md). Put it
// into OptimSettings::ranks; a trainer without a gang is alone. The contract:
//
// - All ranks create the trainer with the same settings, `train.lanes` of at least R, and the same
//   weights, and make the same calls with the same arguments, in the same order: groups, values and
//   returns, dataset rows, folders. `packed()` and `master()` are local.
// - What a step learns from is compared by a checksum: ranks that were given different data all get
//   kInvalidArgument.
// - Every call returns the same on every rank: weights, reports, targets, metrics and errors that
//   follow from the data have the same bits as those of one process with the same lanes.
// - save_state and save_model are calls of all ranks too, and all return the same result. At stage
//   0 rank 0 writes the files of one process. At stages 1 to 3 each rank writes its blocks of the
//   state (state_parts.hpp); rank 0 writes the model, at stage 3 from pieces that the others send.
//   load_state reads on every rank what it needs, whatever number of ranks and stage have written.
// - A rank that is lost, or that fails alone (memory, a device), ends the gang: its own call
//   returns the cause, that of the others the same or kPeerLost. The trainer is then dead. Make a
//   new one from a checkpoint, with a new gang.
// - The gang outlives the trainer and is used by it alone, on the trainer's thread.
#pragma once

namespace troupe::collective {
class Collectives;
}

namespace troupe::learn {

// At stage 3 `packed()`, `master()` and an average of the weights have numbers only after gather(),
// a call of all ranks, until the next call that learns, scores or loads.
//
// 0: every rank has all moments and steps all weights. 1 and 2: a rank has the moments of its
// blocks and steps these; the weights are gathered. (Only the owner of a block adds its gradient,
// so stage 1 has nothing left that stage 2 could divide.) 3: the weights are divided too, and
// gathered part by part for each pass, where all weights are trained. With adapters or frozen
// tensors, which leave little to divide, it is stage 2.
inline constexpr int kZeroStage_max = 3;

struct Ranks {
  collective::Collectives* gang = nullptr;  // null, or of size 1: alone
  int zero_stage = 0;
};

}  // namespace troupe::learn
