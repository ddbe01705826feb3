// The memory of KV blocks.
#include "runtime/model/kv_pool.hpp"

#include "kernels/shapes.hpp"

#include <cstring>

namespace troupe::model {

KvPool::KvPool(const ModelSpec& spec, std::int64_t layers, std::int64_t blocks)
    : blocks_(blocks),
      block_size_(spec.kv_width() * kernels::kKvBlock),
      layer_size_(blocks * block_size_),
      layers_(layers),
      k_(layers * layer_size_),
      v_(layers * layer_size_) {}

void KvPool::copy_block(std::int64_t from, std::int64_t to) {
  const auto bytes = static_cast<std::size_t>(block_size_) * sizeof(float);
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    std::memcpy(k(layer) + to * block_size_, k(layer) + from * block_size_, bytes);
    std::memcpy(v(layer) + to * block_size_, v(layer) + from * block_size_, bytes);
  }
}

std::uint64_t KvPool::bytes() const {
  return static_cast<std::uint64_t>(k_.size() + v_.size()) * sizeof(float);
}

}  // namespace troupe::model
