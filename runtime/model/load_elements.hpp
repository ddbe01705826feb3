// Loads a part of a model's weights: what one of several ranks keeps of them. Stateless.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::model {

// The elements to read among [begin, end) of a model's buffer, in ascending order.
using ElementsToRead = std::function<std::vector<core::Range>(core::Range all)>;

// load_model of these elements; `read`: null for all. What it leaves out is neither read nor
// checked, and takes no memory. A new score head is whole.
core::Result<std::unique_ptr<ParamStore>> load_elements(const std::filesystem::path& folder,
                                                        HeadKind head,
                                                        std::uint64_t seed,
                                                        const ElementsToRead& read);

}  // namespace troupe::model
