#include "runtime/model/kv_pool.hpp"

#include "kernels/shapes.hpp"

namespace troupe::model {

KvPool::KvPool(const ModelSpec& spec,
               std::int64_t layers,
               std::int64_t blocks,
               core::Memory& memory)
    : blocks_(blocks),
      block_size_(spec.kv_width() * kernels::kKvBlock),
      layer_size_(blocks * block_size_),
      layers_(layers),
      k_(layers * layer_size_, memory),
      v_(layers * layer_size_, memory) {}

void KvPool::copy_block(std::int64_t from, std::int64_t to) {
  const auto bytes = static_cast<std::size_t>(block_size_) * sizeof(float);
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    k_.memory().copy(k(layer) + to * block_size_, k(layer) + from * block_size_, bytes);
    v_.memory().copy(v(layer) + to * block_size_, v(layer) + from * block_size_, bytes);
  }
}

std::uint64_t KvPool::bytes() const {
  return static_cast<std::uint64_t>(k_.size() + v_.size()) * sizeof(float);
}

}  // namespace troupe::model
