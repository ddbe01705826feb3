// The interfaces that bring each new version of the weights from the trainer to the engines.
// Messages carry only a version and a WeightLocation; the weights move outside them: by pointer
// inside a process, through shared memory on a host, by TCP between hosts (docs/weights.md).
//
//   trainer: publish(offer) -> location   engine: fetch(version, location) -> intake
//                                                 advance(intake) between steps until done, take
//
// Each side has its thread: `publish` runs on the trainer's device thread, `fetch` on one that may
// block, `advance` and `take` on the engine's. Versions only grow.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/weights/weight_location.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace troupe::weights {

// What the trainer publishes.
struct Offer {
  core::Version version = 0;
  const model::ParamStore* master = nullptr;  // read during `publish` alone
  // Returns the same weights as the panels with which the trainer computes, or is empty. A channel
  // that can use them calls it, during `publish`.
  std::function<std::shared_ptr<const model::PackedWeights>()> packed;
  // Given where the ranks of a trainer have divided the weights, so that `master` is not whole and
  // there are no panels: calls `see` for one part after the other, which lies at `flat +
  // part.begin` meanwhile. All ranks call it. A channel that can have several sources calls it,
  // during `publish`.
  using See = std::function<void(core::Range part, const float* flat)>;
  std::function<core::Result<void>(const See& see)> each_part;
};

class WeightPublisher {
 public:
  virtual ~WeightPublisher() = default;
  // Takes a snapshot of the version and returns where to fetch it; then the master may change.
  // Offering the newest version again only returns its location. Errors: kInvalidArgument (older
  // than the newest), kResources.
  core::Result<WeightLocation> publish(const Offer& offer);

 private:
  virtual core::Result<WeightLocation> take(const Offer& offer) = 0;

  std::optional<core::Version> published_;  // the newest
  WeightLocation location_;
};

// One version on its way into an engine. Dropping it at any time is safe.
class WeightIntake {
 public:
  virtual ~WeightIntake() = default;
  virtual core::Version version() const = 0;
  // True once every checksum has been found right, or if there are none to check.
  virtual bool verified() const = 0;
  // Checks and packs for about `budget` with the caller's team; true when done. Called between
  // engine steps. Errors, after which the intake must be dropped: kData (a checksum is wrong),
  // kPeerLost (the publisher needed the memory: fetch again), kResources (no memory for panels).
  virtual core::Result<bool> advance(core::TeamRunner& team, core::Duration budget) = 0;
  // Returns the panels. Call once, after `advance` returned true.
  virtual std::shared_ptr<const model::PackedWeights> take() = 0;
};

class WeightSubscriber {
 public:
  virtual ~WeightSubscriber() = default;
  // Fetches the newest version at `location`, which must be at least `at_least`. Blocks as long as
  // bytes arrive, and gives up after `patience` without any. Errors: kNotFound (no version yet, or
  // only older ones), kDeadline (nothing arrived), kPeerLost, kData (wrong header, checksum or
  // layout), kInvalidArgument (the source refused the key), kOverloaded (too many receivers),
  // kResources (memory cannot be mapped), kClosed (after `close`).
  virtual core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                            const WeightLocation& location,
                                                            core::Duration patience) = 0;
  // Makes a fetch in progress end soon and later ones fail at once. Callable on any thread. A
  // channel whose fetches never wait need not override it.
  virtual void close() {}
};

}  // namespace troupe::weights
