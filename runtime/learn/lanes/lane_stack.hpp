// The gradients of one round's lanes (lane_tree.hpp), of all lanes or of the neighbouring ones that
// a rank computes. Each lane's gradient starts at zero, and lanes join as soon as the tree lets
// them; what is left at the end of the round are the sums of the largest complete subtrees. A
// backward pass writes to one working gradient; a lane that has to wait is swapped with a spare
// one, so nothing is copied. Used on the trainer's thread; numeric work on the team.
//
// Memory, in gradients of the trained part and in the team's memory: 1, and as many as have to wait
// at a time while a further lane is computed: floor(log2 L) for all lanes, none for a single one.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/learn/lanes/lane_tree.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace troupe::learn {

// to += from, and to = 0, over whole stores.
void add_store(core::TeamRunner& team, const model::ParamStore& from, model::ParamStore& to);
void zero_store(core::TeamRunner& team, model::ParamStore& store);

class LaneStack {
 public:
  // Lanes `own` of `lanes`; gradients with the layout `trained`. `team` outlives the object.
  LaneStack(const model::ModelSpec& spec,
            std::shared_ptr<const model::ParamLayout> trained,
            std::int64_t lanes,
            LaneSpan own,
            core::TeamRunner& team);
  LaneStack(const LaneStack&) = delete;
  LaneStack& operator=(const LaneStack&) = delete;

  // What a backward pass adds to; always the same object.
  model::ParamStore& working() { return lane_; }

  // Forgets what is there, and begins a round.
  void begin_round();
  // Ends the lane before and begins the next one. `present`: it will have a gradient.
  void begin_lane(bool present);
  // Ends the last lane; lanes that are left are absent.
  void end_round();

  bool has_lane_left() const { return next_ < own_.end; }
  // After end_round(): the largest complete subtrees, and the sums of those that are present.
  const std::vector<LaneFold::Subtree>& subtrees() const { return fold_.waiting(); }
  const std::vector<model::ParamStore*>& sums() const { return kept_; }

 private:
  enum class Lane { kClosed, kAbsent, kPresent };

  void close();
  void take(bool present);

  const std::int64_t lanes_;
  const LaneSpan own_;
  core::TeamRunner& team_;
  model::ParamStore lane_;                       // the current lane's gradient
  std::list<model::ParamStore> pool_;            // gradients for lanes that wait
  std::vector<model::ParamStore*> free_, kept_;  // of the pool; the last one kept may be lane_
  LaneFold fold_;
  std::int64_t next_ = 0;  // the next lane to begin
  Lane open_ = Lane::kClosed;
};

}  // namespace troupe::learn
