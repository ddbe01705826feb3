// Pages of host memory that is used now and then: a model that does not fit as a whole, but part by
// part. Any thread; the memory belongs to the caller.
#pragma once

#include <cstddef>

namespace troupe::core {

// Gives back the pages that lie wholly within the block; they read as zeros from then on and are
// taken again when they are written.
void forget_pages(void* block, std::size_t bytes) noexcept;

// Takes pages one by one and no huge ones, so that forgetting a part of the block frees memory.
void use_small_pages(void* block, std::size_t bytes) noexcept;

}  // namespace troupe::core
