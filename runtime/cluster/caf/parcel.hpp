// The one type that CAF carries: a frame, as a byte sequence. Received bytes go straight into the
// frame's aligned buffer. A frame that is too large is not read; for this and for a malformed one
// the parcel has a text instead, so that the receiving actor can count and name the problem. A
// value; copies share the frame. Bound: kFrame_bytes_max.
#pragma once

#include "runtime/cluster/caf/hand_over.hpp"
#include "runtime/wire/frame.hpp"

#include <caf/deserializer.hpp>
#include <caf/error.hpp>
#include <caf/serializer.hpp>

#include <optional>
#include <string>
#include <utility>

namespace troupe::cluster::exchange {

struct Parcel {
  Parcel() = default;
  explicit Parcel(wire::Frame content) : frame(std::move(content)) { given_to_caf(*frame); }

  std::optional<wire::Frame> frame;
  std::string problem = "nothing";  // why there is no frame
};

caf::error inspect(caf::serializer& sink, Parcel& parcel);
caf::error inspect(caf::deserializer& source, Parcel& parcel);
std::string to_string(const Parcel& parcel);

}  // namespace troupe::cluster::exchange
