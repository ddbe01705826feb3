#include "runtime/model/packed.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <utility>

namespace troupe::model {
namespace {

// The panels lie in this object's buffer; only the fill functions write them.
float* writable(const float* piece) {
  return const_cast<float*>(piece);
}

}  // namespace

PackedWeights::PackedWeights(const ModelSpec& spec,
                             kernels::PanelDtype dtype,
                             core::Memory& memory,
                             PanelRoom room)
    : spec_(spec), dtype_(dtype), plan_(spec, dtype, memory, room) {
  TROUPE_CHECK(memory.on_host() || !spec.moe.any(), "experts are computed on the processor only");
  data_ = core::Buffer<float>(lay_out_packed(spec, dtype, kernels::kLineBytes, room).total, memory);
  PackedLayout made =
      lay_out_packed(spec, dtype, reinterpret_cast<std::uintptr_t>(data_.data()), room);
  layers_ = std::move(made.layers);
  final_norm_ = made.final_norm;
  head_ = made.head;
  embedding_ = made.embedding;
  fill_tables(spec.rope, made.full.cos, made.full.sin);
  if (spec.sliding_rope) fill_tables(*spec.sliding_rope, made.sliding.cos, made.sliding.sin);
}

void PackedWeights::fill_tables(const RopeSpec& rope, const float* cos, const float* sin) {
  const std::int64_t count = spec_.context * spec_.rotary() / 2;
  const auto make = [&](float* to_cos, float* to_sin) {
    rope_tables(rope, spec_.rotary(), spec_.context, to_cos, to_sin);
  };
  core::Memory& memory = data_.memory();
  if (memory.on_host()) return make(writable(cos), writable(sin));
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  core::Buffer<float> host_cos(count), host_sin(count);
  make(host_cos.data(), host_sin.data());
  memory.upload(writable(cos), host_cos.data(), bytes);
  memory.upload(writable(sin), host_sin.data(), bytes);
}

void PackedWeights::embed(const std::int32_t* tokens,
                          std::int64_t begin,
                          std::int64_t end,
                          float* x) const {
  const kernels::EmbedRows rows{.hidden = spec_.hidden,
                                .panels = head_,
                                .table = embedding_,
                                .scale = spec_.embed_scale,
                                .tokens = tokens,
                                .x = x};
  kernels::ops().embed_rows(rows, {begin, end});
}

void PackedWeights::fill_unit(std::int64_t unit, const float* flat, bool here) {
  plan_.fill_unit(unit, flat, image(), here);
}

void PackedWeights::fill(core::Team team, const ParamStore& params, core::Version version) {
  TROUPE_CHECK(params.size() == flat_size(), "parameters of another model");
  TROUPE_CHECK(params.memory().on_host() || &params.memory() == &data_.memory(),
               "parameters on another device than their panels");
  if (params.memory().on_host()) {
    const auto [begin, end] = team.share(fill_units());
    for (std::int64_t unit = begin; unit < end; ++unit)
      fill_unit(unit, params.data());
  } else {
    plan_.fill(params.data(), image());
  }
  if (team.rank == 0) version_ = version;
  team.barrier();
}

void PackedWeights::fill_range(core::Team team, const float* numbers, core::Range part) {
  if (!memory().on_host()) return plan_.fill_part(part, numbers, image());  // a launch for each
  for (const PackPlan::Stretch& stretch : plan_.stretches_in(part)) {
    const auto [begin, end] = team.share(stretch.units);
    for (std::int64_t unit = begin; unit < end; ++unit)
      plan_.fill_unit(stretch.first_unit + unit, numbers, image(), true, part.begin);
  }
}

void PackedWeights::touch() {
  if (!data_.memory().on_host()) return;
  constexpr std::int64_t kPage = 4096 / sizeof(float);
  for (std::int64_t i = 0; i < data_.size(); i += kPage) {
    volatile float* const cell = data_.data() + i;
    *cell = *cell;
  }
}

std::uint64_t PackedWeights::bytes() const {
  return static_cast<std::uint64_t>(data_.size()) * sizeof(float);
}

}  // namespace troupe::model
