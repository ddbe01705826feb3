#include "runtime/model/lora.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"
#include "runtime/core/rng.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::model {
namespace {

using core::Team;
using kernels::ops;

std::size_t bytes_of(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

std::uint32_t crc_of(const core::Buffer<float>& numbers) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  std::vector<float> piece(static_cast<std::size_t>(std::min(numbers.size(), kPiece)));
  std::uint32_t crc = 0;
  for (std::int64_t at = 0; at < numbers.size(); at += kPiece) {
    const std::size_t bytes = bytes_of(std::min(kPiece, numbers.size() - at));
    numbers.memory().download(piece.data(), numbers.data() + at, bytes);
    crc = core::crc32c(piece.data(), bytes, crc);
  }
  return crc;
}

}  // namespace

Lora::Lora(const ParamStore& master, std::shared_ptr<const ParamLayout> trained, double scale)
    : scale_(scale), values_(master.spec(), std::move(trained), master.memory()) {
  const ModelSpec& spec = master.spec();
  const ParamLayout& layout = values_.layout();
  std::int64_t base = 0, panels = 0;
  const auto take_panels = [&](std::int64_t n, std::int64_t k) {
    const std::int64_t offset = panels;
    panels += kernels::packed_size(n, k);
    return offset;
  };
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    for (const Linear linear : kAllLinears) {
      const auto number = static_cast<std::size_t>(layer);
      const AdapterOffsets& at = layout.adapters[number][index_of(linear)];
      if (at.rank == 0) continue;
      Adapter& adapter = adapters_.emplace_back();
      adapter.layer = layer;
      adapter.linear = linear;
      adapter.shape = shape_of(spec, linear);
      adapter.at = at;
      adapter.master = master.layout().layers[number].of(linear);
      adapter.base = base;
      base += adapter.shape.rows * adapter.shape.columns;
      adapter.a_columns = take_panels(adapter.shape.columns, at.rank);
      adapter.down = take_panels(at.rank, adapter.shape.columns);
      adapter.back = take_panels(at.rank, adapter.shape.rows);
    }
  }
  core::Memory& memory = master.memory();
  base_ = core::Buffer<float>(base, memory);
  panels_ = core::Buffer<float>(panels, memory);
  scaled_ = core::Buffer<float>(values_.size(), memory);
  for (const Adapter& adapter : adapters_) {
    memory.copy(base_.data() + adapter.base, master.data() + adapter.master,
                bytes_of(adapter.shape.rows * adapter.shape.columns));
  }
  for (const ParamView& view : layout.views) {
    const ParamView* const whole = master.layout().find(view.name);
    if (whole == nullptr) continue;
    const std::int64_t rows = view.shape.front();
    wholes_.push_back({view.offset, whole->offset, rows, view.count / rows});
    memory.copy(values_.data() + view.offset, master.data() + whole->offset, bytes_of(view.count));
  }
  base_crc_ = crc_of(base_);
}

void Lora::start(std::uint64_t seed) {
  std::uint64_t stream = 0;
  std::vector<float> a, b;
  for (const Adapter& adapter : adapters_) {
    const double bound = 1.0 / std::sqrt(static_cast<double>(adapter.shape.columns));
    ++stream;
    a.resize(static_cast<std::size_t>(adapter.at.rank * adapter.shape.columns));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double unit = core::uniform(seed, stream, static_cast<std::uint64_t>(i));
      a[i] = static_cast<float>((2 * unit - 1) * bound);
    }
    b.assign(static_cast<std::size_t>(adapter.shape.rows * adapter.at.rank), 0.0f);
    values_.memory().upload(values_.data() + adapter.at.a, a.data(), a.size() * sizeof(float));
    values_.memory().upload(values_.data() + adapter.at.b, b.data(), b.size() * sizeof(float));
  }
}

// Packs the panels of one adapter; one member does it.
void Lora::pack(const Adapter& adapter) {
  const auto& [rows, columns] = adapter.shape;
  const std::int64_t rank = adapter.at.rank;
  const float* a = values_.data() + adapter.at.a;
  const float* b = values_.data() + adapter.at.b;
  float* panels = panels_.data();
  ops().pack_plain(
      {.from = a, .ldf = columns, .n = columns, .k = rank, .to = panels + adapter.a_columns},
      {0, kernels::panels_of(columns)});
  ops().pack_transposed(
      {.from = a, .ldf = columns, .n = rank, .k = columns, .to = panels + adapter.down},
      {0, kernels::panels_of(rank)});
  ops().pack_plain({.from = b, .ldf = rank, .n = rank, .k = rows, .to = panels + adapter.back},
                   {0, kernels::panels_of(rank)});
}

void Lora::add_to_base(Team team, const Adapter& adapter, float* master) const {
  const auto& [rows, columns] = adapter.shape;
  const kernels::Gemm gemm{.m = rows,
                           .n = columns,
                           .k = adapter.at.rank,
                           .a = scaled_.data() + adapter.at.b,
                           .lda = adapter.at.rank,
                           .b = panels_.data() + adapter.a_columns,
                           .c = master + adapter.master,
                           .ldc = columns,
                           .residual = base_.data() + adapter.base,
                           .ldr = columns};
  const core::Range own = team.share(rows);
  if (!own.empty()) ops().gemm(gemm, own, {0, kernels::panels_of(columns)});
}

void Lora::merge(core::TeamRunner& team, ParamStore& master) {
  TROUPE_CHECK(&master.memory() == &team.memory() && &values_.memory() == &team.memory(),
               "adapters and weights are in the memory of the team");
  team.run([&](Team member) {
    kernels::flush_denormals();
    ops().scale(values_.data(), static_cast<float>(scale_), scaled_.data(),
                member.share(values_.size(), 16));
    const auto [first, last] = member.share(static_cast<std::int64_t>(adapters_.size()));
    for (std::int64_t i = first; i < last; ++i)
      pack(adapters_[static_cast<std::size_t>(i)]);
    member.barrier();
    for (const Adapter& adapter : adapters_)
      add_to_base(member, adapter, master.data());
    for (const Whole& whole : wholes_) {
      ops().copy_rows({.columns = whole.columns,
                       .from = values_.data() + whole.at,
                       .ldf = whole.columns,
                       .to = master.data() + whole.master,
                       .ldt = whole.columns},
                      member.share(whole.rows));
    }
  });
}

const Lora::Adapter& Lora::adapter_of(std::int64_t layer, Linear linear) const {
  const auto found = std::find_if(adapters_.begin(), adapters_.end(), [&](const Adapter& adapter) {
    return adapter.layer == layer && adapter.linear == linear;
  });
  TROUPE_CHECK(found != adapters_.end(), "panels of an adapter that is not there");
  return *found;
}

std::int64_t Lora::rank(std::int64_t layer, Linear linear) const {
  return values_.layout().adapters[static_cast<std::size_t>(layer)][index_of(linear)].rank;
}

const float* Lora::down_panels(std::int64_t layer, Linear linear) const {
  return panels_.data() + adapter_of(layer, linear).down;
}

const float* Lora::back_panels(std::int64_t layer, Linear linear) const {
  return panels_.data() + adapter_of(layer, linear).back;
}

}  // namespace troupe::model
