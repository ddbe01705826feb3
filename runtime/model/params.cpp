#include "runtime/model/params.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/randomise.hpp"

#include <cmath>
#include <utility>

namespace troupe::model {
namespace {

// Places tensors one after another. Tensors of a group are adjacent, so that q, k, v (and gate, up)
// can be read as one matrix. Groups start on multiples of 16 elements. A tensor that the choice
// does not keep takes no room and has offset -1.
class Layouter {
 public:
  Layouter(std::vector<ParamView>& views, const LayoutChoice& choice)
      : views_(views), choice_(choice) {}

  void start_group() {
    at_ = (at_ + 15) / 16 * 16;
    total_ = std::max(total_, at_);
  }
  void start_part(std::int64_t part) {
    start_group();
    if (choice_.begin) at_ = choice_.begin(part);
  }

  std::int64_t add(const std::string& name, std::vector<std::int64_t> shape) {
    return choice_.keep(name) ? place(name, std::move(shape)) : -1;
  }
  std::int64_t add_alone(const std::string& name, std::vector<std::int64_t> shape) {
    start_group();
    return add(name, std::move(shape));
  }

  AdapterOffsets add_adapter(const ModelSpec& spec, std::int64_t layer, Linear linear) {
    AdapterOffsets at;
    at.rank = has_linear(spec, layer, linear) ? choice_.rank(layer, linear) : 0;
    if (at.rank == 0) return at;
    const std::string module = module_name(spec, layer, linear);
    const LinearShape shape = shape_of(spec, linear);
    start_group();
    at.a = place(module + ".lora_A.weight", {at.rank, shape.columns});
    start_group();
    at.b = place(module + ".lora_B.weight", {shape.rows, at.rank});
    return at;
  }

  std::int64_t total() {
    start_group();
    return total_;
  }

 private:
  std::int64_t place(std::string name, std::vector<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t dimension : shape)
      count *= dimension;
    const std::int64_t offset = at_;
    views_.push_back({std::move(name), std::move(shape), offset, count});
    at_ += count;
    return offset;
  }

  std::vector<ParamView>& views_;
  const LayoutChoice& choice_;
  std::int64_t at_ = 0, total_ = 0;
};

void add_attention(Layouter& layouter,
                   const ModelSpec& spec,
                   const std::string& prefix,
                   LayerOffsets& at) {
  layouter.start_group();
  if (spec.fused_linears) {
    at.q = layouter.add(prefix + "qkv_proj.weight", {spec.qkv_width(), spec.hidden});
  } else {
    at.q = layouter.add(prefix + "q_proj.weight", {spec.q_width(), spec.hidden});
    at.k = layouter.add(prefix + "k_proj.weight", {spec.kv_width(), spec.hidden});
    at.v = layouter.add(prefix + "v_proj.weight", {spec.kv_width(), spec.hidden});
  }
  if (spec.qkv_bias) {
    layouter.start_group();
    at.q_bias = layouter.add(prefix + "q_proj.bias", {spec.q_width()});
    at.k_bias = layouter.add(prefix + "k_proj.bias", {spec.kv_width()});
    at.v_bias = layouter.add(prefix + "v_proj.bias", {spec.kv_width()});
  }
  if (spec.qk_norm) {
    at.q_norm = layouter.add_alone(prefix + "q_norm.weight", {spec.head_dim});
    at.k_norm = layouter.add_alone(prefix + "k_norm.weight", {spec.head_dim});
  }
  at.o = layouter.add_alone(prefix + "o_proj.weight", {spec.hidden, spec.q_width()});
  if (spec.o_bias) at.o_bias = layouter.add_alone(prefix + "o_proj.bias", {spec.hidden});
}

MoeOffsets add_experts(Layouter& layouter, const ModelSpec& spec, std::int64_t layer) {
  const MoeSpec& moe = spec.moe;
  MoeOffsets at;
  at.router = layouter.add_alone(router_name(moe.names, layer), {moe.experts, spec.hidden});
  if (moe.has_shared()) at.shared_gate = layouter.add(shared_gate_name(layer), {1, spec.hidden});
  at.experts.resize(static_cast<std::size_t>(moe.experts));
  std::vector<ExpertNames> names;
  for (std::int64_t e = 0; e < moe.experts; ++e)
    names.push_back(expert_names(moe.names, layer, e));
  layouter.start_group();
  for (std::size_t e = 0; e < names.size(); ++e) {
    at.experts[e].gate = layouter.add(names[e].gate, {moe.ffn, spec.hidden});
    at.experts[e].up = layouter.add(names[e].up, {moe.ffn, spec.hidden});
  }
  layouter.start_group();
  for (std::size_t e = 0; e < names.size(); ++e)
    at.experts[e].down = layouter.add(names[e].down, {spec.hidden, moe.ffn});
  if (!moe.has_shared()) return at;
  const ExpertNames shared = shared_expert_names(layer);
  layouter.start_group();
  at.shared.gate = layouter.add(shared.gate, {moe.shared_ffn, spec.hidden});
  at.shared.up = layouter.add(shared.up, {moe.shared_ffn, spec.hidden});
  at.shared.down = layouter.add_alone(shared.down, {spec.hidden, moe.shared_ffn});
  return at;
}

void add_feed_forward(Layouter& layouter,
                      const ModelSpec& spec,
                      const std::string& prefix,
                      LayerOffsets& at) {
  layouter.start_group();
  if (spec.fused_linears) {
    at.gate = layouter.add(prefix + "gate_up_proj.weight", {2 * spec.ffn, spec.hidden});
  } else {
    at.gate = layouter.add(prefix + "gate_proj.weight", {spec.ffn, spec.hidden});
    at.up = layouter.add(prefix + "up_proj.weight", {spec.ffn, spec.hidden});
  }
  if (spec.mlp_bias) {
    layouter.start_group();
    at.gate_bias = layouter.add(prefix + "gate_proj.bias", {spec.ffn});
    at.up_bias = layouter.add(prefix + "up_proj.bias", {spec.ffn});
  }
  at.down = layouter.add_alone(prefix + "down_proj.weight", {spec.hidden, spec.ffn});
  if (spec.mlp_bias) at.down_bias = layouter.add_alone(prefix + "down_proj.bias", {spec.hidden});
}

LayerOffsets add_layer(Layouter& layouter, const ModelSpec& spec, std::int64_t index) {
  const std::string layer = "model.layers." + std::to_string(index) + ".";
  const auto norm = [&](const char* name) {
    return layouter.add_alone(layer + name + ".weight", {spec.hidden});
  };
  LayerOffsets at;
  at.input_norm = norm("input_layernorm");
  add_attention(layouter, spec, layer + "self_attn.", at);
  // With `post_norms`, the norm after attention has the name that other families give to the
  // feed-forward's input norm.
  if (spec.post_norms) at.attention_out_norm = norm("post_attention_layernorm");
  at.ffn_norm = norm(spec.post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm");
  if (spec.moe.sparse(index)) {
    at.moe = add_experts(layouter, spec, index);
  } else {
    add_feed_forward(layouter, spec, layer + "mlp.", at);
  }
  if (spec.post_norms) at.ffn_out_norm = norm("post_feedforward_layernorm");
  return at;
}

LayoutChoice whole_model() {
  return {[](const std::string&) { return true; },
          [](std::int64_t, Linear) { return std::int64_t{0}; }};
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

ParamLayout::ParamLayout(const ModelSpec& spec) : ParamLayout(spec, whole_model()) {}

ParamLayout::ParamLayout(const ModelSpec& spec, const LayoutChoice& choice) {
  Layouter layouter(views, choice);
  layouter.start_part(0);
  embedding = layouter.add_alone("model.embed_tokens.weight", {spec.vocab, spec.hidden});
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    layouter.start_part(1 + i);
    layers.push_back(add_layer(layouter, spec, i));
    LayerAdapters& of_layer = adapters.emplace_back();
    for (const Linear linear : kAllLinears)
      of_layer[index_of(linear)] = layouter.add_adapter(spec, i, linear);
  }
  layouter.start_part(1 + spec.layers);
  final_norm = layouter.add_alone("model.norm.weight", {spec.hidden});
  if (spec.tied) {
    head = embedding;
  } else {
    const bool score = spec.head == HeadKind::kScore;
    head = layouter.add_alone(score ? kScoreWeight : "lm_head.weight",
                              {spec.head_rows(), spec.hidden});
  }
  total = layouter.total();
}

const ParamView* ParamLayout::find(std::string_view name) const {
  for (const ParamView& view : views) {
    if (view.name == name) return &view;
  }
  return nullptr;
}

ParamStore::ParamStore(const ModelSpec& spec)
    : spec_(spec), layout_(std::make_shared<const ParamLayout>(spec)), data_(layout_->total) {}

ParamStore::ParamStore(const ModelSpec& spec,
                       std::shared_ptr<const ParamLayout> layout,
                       core::Memory& memory)
    : spec_(spec), layout_(std::move(layout)), data_(layout_->total, memory) {}

ParamStore ParamStore::same_layout() const {
  return ParamStore(spec_, layout_, memory());
}

ParamStore ParamStore::to(core::Memory& memory) const {
  ParamStore out(spec_, layout_, memory);
  const auto bytes = static_cast<std::size_t>(size()) * sizeof(float);
  if (&memory == &data_.memory()) {
    memory.copy(out.data(), data(), bytes);
  } else if (memory.on_host()) {
    data_.memory().download(out.data(), data(), bytes);
  } else {
    memory.upload(out.data(), data(), bytes);
  }
  return out;
}

HostCopy::HostCopy(const ParamStore& store) : store_(store) {
  if (!store.memory().on_host()) copy_.emplace(store.to(core::host_memory()));
}

std::span<float> ParamStore::view(std::string_view name) {
  TROUPE_CHECK(memory().on_host(), "a tensor on a device is read through a copy");
  const ParamView* tensor = layout_->find(name);
  if (tensor == nullptr) return {};
  return {data_.data() + tensor->offset, static_cast<std::size_t>(tensor->count)};
}

std::span<const float> ParamStore::view(std::string_view name) const {
  return const_cast<ParamStore*>(this)->view(name);
}

void randomise(core::Team member, ParamStore& params, std::uint64_t seed, float std) {
  std::uint64_t stream = 0;
  for (const ParamView& tensor : params.layout().views) {
    const bool is_norm = tensor.name.find("norm.weight") != std::string::npos;
    const float mean = is_norm && !params.spec().norm_plus_one ? 1.0f : 0.0f;
    const float deviation = is_norm ? 0.1f : std;
    float* out = params.data() + tensor.offset;
    ++stream;
    const auto [begin, end] = member.share(tensor.count, 16);
    for (std::int64_t i = begin; i < end; ++i) {
      // The sum of four uniform words is close to normal. In units of 2^32 its mean is 2, its
      // variance 1/3.
      const auto words = core::philox4x32(seed, static_cast<std::uint64_t>(i), stream);
      double sum = 0;
      for (const std::uint32_t word : words)
        sum += static_cast<double>(word);
      const double normal = (sum * 0x1p-32 - 2.0) * std::sqrt(3.0);
      out[i] = mean + deviation * static_cast<float>(normal);
    }
  }
}

void randomise(ParamStore& params, std::uint64_t seed, float std) {
  randomise(core::Team{}, params, seed, std);
}

}  // namespace troupe::model
