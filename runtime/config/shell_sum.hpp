// The arithmetic of a shell: $((...)). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace troupe::config {

// The value of an expression of whole numbers, names, + - * / % and brackets. nullopt: not such an
// expression, a name without a number, a division by zero, a value beyond 64 bits.
std::optional<std::int64_t> shell_sum(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(std::string_view)>& name);

}  // namespace troupe::config
