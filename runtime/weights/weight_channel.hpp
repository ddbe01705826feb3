// How a new version of the weights travels from the trainer to the engines. Messages carry a
// version and a WeightLocation; the weights go beside them, by pointer inside a process, through
// shared memory on a host, by TCP between hosts (docs/weights.md).
//
//   trainer: publish(offer) -> location   engine: fetch(version, location) -> intake
//                                                 advance(intake) between steps until done, take
//
// The three sides run on three threads: publish on the trainer's device thread, fetch on one that
// may block, advance and take on the engine's. Versions never run backwards.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/weights/weight_location.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace troupe::weights {

struct Offer {
  core::Version version = 0;
  const model::ParamStore* master = nullptr;  // read during `publish` alone
  // The same weights as panels; called by the local channel alone.
  std::function<std::shared_ptr<const model::PackedWeights>()> packed;
};

class WeightPublisher {
 public:
  virtual ~WeightPublisher() = default;
  // Returns when the snapshot is taken; the master may change after that. Offering a version again
  // returns its first location. Errors: kInvalidArgument (older than the newest), kResources.
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
  // True once every byte to be packed has passed its checksum.
  virtual bool verified() const = 0;
  // Checks and packs for about `budget` on the caller's thread with its team; true when done.
  // Called between engine steps. Error: kData when a checksum is wrong; the intake must then
  // be dropped.
  virtual core::Result<bool> advance(core::TeamRunner& team, core::Duration budget) = 0;
  // Returns the panels. Call once, after `advance` returned true.
  virtual std::shared_ptr<const model::PackedWeights> take() = 0;
};

class WeightSubscriber {
 public:
  virtual ~WeightSubscriber() = default;
  // Fetches the source's newest version, which must be at least `at_least`. Blocks as long as bytes
  // move; gives up after `patience` without any. Errors: kNotFound (only older ones
  // there), kDeadline (nothing moved), kPeerLost, kData (wrong header, checksum or layout),
  // kInvalidArgument (the source refused the key), kOverloaded (too many receivers), kClosed (after
  // `close`).
  virtual core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                            const WeightLocation& location,
                                                            core::Duration patience) = 0;
  // Cancels: a fetch in progress ends soon, later ones fail at once. On any thread. A channel whose
  // fetches never wait need not override this.
  virtual void close() {}
};

}  // namespace troupe::weights
