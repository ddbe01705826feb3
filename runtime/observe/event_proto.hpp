// Encodes the TensorBoard messages that we write as Protocol Buffers, by hand: an Event with a file
// version, scalars or a session start. Field numbers are those of TensorBoard's
// event.proto, summary.proto and tensor.proto. Pure functions. Wall times are seconds since 1970.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::observe {

std::string version_event(double wall_time_s);

// Tells TensorBoard that a run resumes at `step`. TensorBoard then ignores what the folder's older
// files hold at that step and after it.
std::string session_start_event(double wall_time_s, std::int64_t step);

// The values are written as float32.
std::string scalars_event(double wall_time_s,
                          std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values);

// One record of an event file: length, masked CRC of the length, payload, masked CRC of the
// payload.
std::string framed(std::string_view payload);

}  // namespace troupe::observe
