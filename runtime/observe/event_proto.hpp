// The few TensorBoard messages that we write, encoded as Protocol Buffers by hand: Event with a
// file version, scalars, a text or a session start. Field numbers are those of TensorBoard's
// event.proto, summary.proto and tensor.proto. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::observe {

std::string version_event(double wall_time_s);

// Tells TensorBoard that a run goes on from `step`: what other files of the folder hold from there
// on is dropped.
std::string session_start_event(double wall_time_s, std::int64_t step);

std::string scalars_event(double wall_time_s,
                          std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values);

std::string text_event(double wall_time_s,
                       std::int64_t step,
                       std::string_view tag,
                       std::string_view text);

// One record of an event file: length, masked CRC of the length, payload, masked CRC of the
// payload.
std::string framed(std::string_view payload);

}  // namespace troupe::observe
