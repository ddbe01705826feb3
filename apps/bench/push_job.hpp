// What `troupe bench push` pushes: a model and its weights of each version, which both processes make
// for themselves, so that the receiver can tell which version a token came from. Pure functions.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::app {

struct PushJob {
  std::string model;  // a folder; empty: a random model of about `bytes`
  std::int64_t bytes = std::int64_t{256} << 20;
  std::string path = "shm";
  std::int64_t threads = 0, engine_threads = 0;
  std::int64_t pushes = 100, checked = 8;
  std::int64_t batch = 4, slice_us = 2000;
};
// What the receiver needs of it, as its first message.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PushJob, model, bytes, threads, engine_threads, batch, slice_us)

// The loaded or random weights, version 0.
core::Result<std::unique_ptr<model::ParamStore>> base_weights(const PushJob& job);

// `out` becomes version `version` of `base`: every weight scaled by its own factor.
void write_version(core::TeamRunner& team,
                   const model::ParamStore& base,
                   core::Version version,
                   model::ParamStore& out);

}  // namespace troupe::app
