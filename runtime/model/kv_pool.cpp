#include "runtime/model/kv_pool.hpp"

namespace troupe::model {

KvPool::KvPool(const ModelSpec& spec,
               std::int64_t layers,
               std::int64_t blocks,
               core::Memory& memory,
               kernels::KvDtype dtype)
    : blocks_(blocks),
      block_size_(spec.kv_width() * kernels::kKvBlock),
      layers_(layers),
      dtype_(dtype),
      k_(layers * blocks * block_bytes(), memory),
      v_(layers * blocks * block_bytes(), memory) {}

void KvPool::reserve_discard(const ModelSpec& spec,
                             std::int64_t blocks,
                             core::Memory& memory,
                             kernels::KvDtype dtype) {
  if (blocks <= blocks_ && &k_.memory() == &memory && dtype_ == dtype) return;
  *this = KvPool();  // released before more is allocated
  *this = KvPool(spec, 1, blocks + blocks / 4, memory, dtype);
}

void KvPool::copy_block(std::int64_t from, std::int64_t to) {
  const std::int64_t bytes = block_bytes();
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    for (core::Buffer<unsigned char>* pool : {&k_, &v_}) {
      unsigned char* const begin = pool->data() + begin_of(layer);
      pool->memory().copy(begin + to * bytes, begin + from * bytes,
                          static_cast<std::size_t>(bytes));
    }
  }
}

std::uint64_t KvPool::bytes() const {
  return static_cast<std::uint64_t>(k_.size() + v_.size());
}

}  // namespace troupe::model
