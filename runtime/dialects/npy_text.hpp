// Encodes an array of small integers as text for JSON: NumPy's .npy format (version 1.0, int32, C
// order) in base64, as vLLM sends routed experts. A client decodes it by
// `np.load(io.BytesIO(base64.b64decode(text)))`. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace troupe::dialects {

// `values` has shape[0] * shape[1] * shape[2] numbers, in C order.
std::string npy_text(std::span<const std::uint16_t> values,
                     const std::array<std::size_t, 3>& shape);

}  // namespace troupe::dialects
