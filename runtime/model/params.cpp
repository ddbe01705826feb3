// The layout of the flat parameter buffer, and random models.
#include "runtime/model/params.hpp"

#include "runtime/core/rng.hpp"

#include <cmath>
#include <utility>

namespace troupe::model {
namespace {

// Lays tensors one after another. Within a group they touch, so that q, k, v (and gate, up) can be
// read as one matrix; groups start on multiples of 16 elements. A tensor that is not wanted takes no
// place and has offset -1.
class Layouter {
 public:
  Layouter(std::vector<ParamView>& views, const LayoutChoice& choice)
      : views_(views), choice_(choice) {}

  void start_group() { total_ = (total_ + 15) / 16 * 16; }

  std::int64_t add(const std::string& name, std::vector<std::int64_t> shape) {
    return choice_.keep(name) ? place(name, std::move(shape)) : -1;
  }
  std::int64_t add_alone(const std::string& name, std::vector<std::int64_t> shape) {
    start_group();
    return add(name, std::move(shape));
  }

  AdapterOffsets add_adapter(const ModelSpec& spec, std::int64_t layer, Linear linear) {
    AdapterOffsets at;
    at.rank = choice_.rank(layer, linear);
    if (at.rank == 0) return at;
    const std::string module = module_name(layer, linear);
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
    const std::int64_t offset = total_;
    views_.push_back({std::move(name), std::move(shape), offset, count});
    total_ += count;
    return offset;
  }

  std::vector<ParamView>& views_;
  const LayoutChoice& choice_;
  std::int64_t total_ = 0;
};

LayerOffsets add_layer(Layouter& layouter, const ModelSpec& spec, std::int64_t index) {
  const std::string layer = "model.layers." + std::to_string(index) + ".";
  const std::string attention = layer + "self_attn.";
  LayerOffsets at{};
  at.q_bias = at.k_bias = at.v_bias = -1;
  at.input_norm = layouter.add_alone(layer + "input_layernorm.weight", {spec.hidden});
  layouter.start_group();
  at.q = layouter.add(attention + "q_proj.weight", {spec.q_width(), spec.hidden});
  at.k = layouter.add(attention + "k_proj.weight", {spec.kv_width(), spec.hidden});
  at.v = layouter.add(attention + "v_proj.weight", {spec.kv_width(), spec.hidden});
  if (spec.qkv_bias) {
    layouter.start_group();
    at.q_bias = layouter.add(attention + "q_proj.bias", {spec.q_width()});
    at.k_bias = layouter.add(attention + "k_proj.bias", {spec.kv_width()});
    at.v_bias = layouter.add(attention + "v_proj.bias", {spec.kv_width()});
  }
  at.o = layouter.add_alone(attention + "o_proj.weight", {spec.hidden, spec.q_width()});
  at.post_norm = layouter.add_alone(layer + "post_attention_layernorm.weight", {spec.hidden});
  layouter.start_group();
  at.gate = layouter.add(layer + "mlp.gate_proj.weight", {spec.ffn, spec.hidden});
  at.up = layouter.add(layer + "mlp.up_proj.weight", {spec.ffn, spec.hidden});
  at.down = layouter.add_alone(layer + "mlp.down_proj.weight", {spec.hidden, spec.ffn});
  return at;
}

LayoutChoice whole_model() {
  return {[](const std::string&) { return true; },
          [](std::int64_t, Linear) { return std::int64_t{0}; }};
}

}  // namespace

ParamLayout::ParamLayout(const ModelSpec& spec) : ParamLayout(spec, whole_model()) {}

ParamLayout::ParamLayout(const ModelSpec& spec, const LayoutChoice& choice) {
  Layouter layouter(views, choice);
  embedding = layouter.add_alone("model.embed_tokens.weight", {spec.vocab, spec.hidden});
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    layers.push_back(add_layer(layouter, spec, i));
    LayerAdapters& of_layer = adapters.emplace_back();
    for (const Linear linear : kAllLinears)
      of_layer[index_of(linear)] = layouter.add_adapter(spec, i, linear);
  }
  final_norm = layouter.add_alone("model.norm.weight", {spec.hidden});
  if (spec.tied) {
    head = embedding;
  } else {
    const bool score = spec.head == HeadKind::kScore;
    head = layouter.add_alone(score ? "score.weight" : "lm_head.weight",
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

ParamStore::ParamStore(const ModelSpec& spec, std::shared_ptr<const ParamLayout> layout)
    : spec_(spec), layout_(std::move(layout)), data_(layout_->total) {}

ParamStore ParamStore::same_layout() const {
  return ParamStore(spec_, layout_);
}

std::span<float> ParamStore::view(std::string_view name) {
  const ParamView* tensor = layout_->find(name);
  if (tensor == nullptr) return {};
  return {data_.data() + tensor->offset, static_cast<std::size_t>(tensor->count)};
}

std::span<const float> ParamStore::view(std::string_view name) const {
  return const_cast<ParamStore*>(this)->view(name);
}

void randomise(ParamStore& params, std::uint64_t seed, float std) {
  std::uint64_t stream = 0;
  for (const ParamView& tensor : params.layout().views) {
    const bool is_norm = tensor.name.find("norm.weight") != std::string::npos;
    const float mean = is_norm ? 1.0f : 0.0f;
    const float deviation = is_norm ? 0.1f : std;
    float* out = params.data() + tensor.offset;
    ++stream;
    for (std::int64_t i = 0; i < tensor.count; ++i) {
      // The sum of four uniform words is close to normal: mean 2, variance 1/3 in units of 2^32.
      const auto words = core::philox4x32(seed, static_cast<std::uint64_t>(i), stream);
      double sum = 0;
      for (const std::uint32_t word : words)
        sum += static_cast<double>(word);
      const double normal = (sum * 0x1p-32 - 2.0) * std::sqrt(3.0);
      out[i] = mean + deviation * static_cast<float>(normal);
    }
  }
}

}  // namespace troupe::model
