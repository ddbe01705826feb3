// Measures the kernels against the machine's limits, found in the same run: one JSON object a line.
//   kernels_perf [gemm|stack|backward|attention|rows|all] [threads] [milliseconds a figure]
//   [wall|cpu] [dtype]
// TROUPE_ISA picks the level, `dtype` (f32, bf16, int8, bf16-compute) the panels of gemm. Not a
// test: it asserts nothing. Other load on the machine shows in wall time; `cpu` takes the longest
// processor time of a member instead, which it shows in less.
#include "kernels/calibrate.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace troupe::kernels {
namespace {

// Seconds on the wall or of this thread's processor time.
double now(bool cpu) {
  timespec time{};
  clock_gettime(cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using Body = std::function<void(core::Team)>;

struct Bench {
  int threads;
  double budget_s;
  bool cpu;
  PanelDtype dtype = PanelDtype::kF32;
  MachineLimits limits{};

  // Every member of a fresh team runs `member`.
  void with_team(const Body& member) const {
    core::TeamBarrier barrier(threads);
    std::vector<std::jthread> others;
    const auto start = [&](int rank) {
      flush_denormals();
      member(core::Team{rank, threads, &barrier});
    };
    for (int rank = 1; rank < threads; ++rank)
      others.emplace_back(start, rank);
    start(0);
  }

  // Shortest time of one call of `body` by the whole team.
  double best_seconds(const Body& body) const {
    double best = 1e9;
    bool more = true;
    std::vector<double> taken(static_cast<std::size_t>(threads));
    with_team([&](core::Team team) {
      const double begin = now(false);
      body(team);
      for (int i = 0;; ++i) {
        team.barrier();
        const double start = now(cpu);
        body(team);
        if (!cpu) team.barrier();
        taken[static_cast<std::size_t>(team.rank)] = now(cpu) - start;
        team.barrier();
        if (team.rank == 0) {
          best = std::min(best, *std::max_element(taken.begin(), taken.end()));
          more = i < 2 || now(false) - begin < budget_s;
        }
        team.barrier();
        if (!more) return;
      }
    });
    return best;
  }

  void report(const std::string& name,
              const std::string& sizes,
              double flops,
              double bytes,
              double seconds) const {
    std::printf(
        "{\"kernel\":\"%s\",\"isa\":\"%s\",\"threads\":%d,%s,\"us\":%.1f,"
        "\"gflops\":%.1f,\"gb_per_s\":%.1f,\"share_of_limit\":%.3f}\n",
        name.c_str(), ops().name, threads, sizes.c_str(), seconds * 1e6, flops / seconds * 1e-9,
        bytes / seconds * 1e-9,
        limits.share_of_limit(flops / products_of_lane(dtype), bytes, seconds));
    std::fflush(stdout);
  }
};

core::Buffer<float> random_floats(std::int64_t count) {
  core::Buffer<float> out(count);
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    out[i] = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  }
  return out;
}

void gemm_shape(const Bench& bench, std::int64_t k, std::int64_t n) {
  const core::Buffer<float> weights = random_floats(n * k);
  core::Buffer<float> b(packed_bytes(bench.dtype, n, k) / 4), scale(panels_of(n) * kPanel);
  const PanelRoom room(b.data(), bench.dtype, scale.data());
  ops().pack_transposed({.from = weights.data(), .ldf = k, .n = n, .k = k, .to = room},
                        {0, panels_of(n)});
  const float* const scales = bench.dtype == PanelDtype::kInt8 ? scale.data() : nullptr;
  for (const std::int64_t m : {1, 2, 4, 8, 16, 32, 256, 2048}) {
    if (m == 2048 && (k != 2048 || n != 2048)) continue;
    const core::Buffer<float> a = random_floats(m * k);
    core::Buffer<float> c = random_floats(m * n);
    const Gemm g{.m = m,
                 .n = n,
                 .k = k,
                 .a = a.data(),
                 .lda = k,
                 .b = {b.data(), bench.dtype, scales},
                 .c = c.data(),
                 .ldc = n};
    const double seconds = bench.best_seconds([&](core::Team team) {
      const auto [begin, end] = team.share(panels_of(n));
      ops().gemm(g, {0, m}, {begin, end});
    });
    const double flops = 2.0 * static_cast<double>(m * n * k);
    bench.report("gemm",
                 "\"m\":" + std::to_string(m) + ",\"n\":" + std::to_string(n) +
                     ",\"k\":" + std::to_string(k) + ",\"dtype\":\"" + name_of(bench.dtype) + "\"",
                 flops, bytes_of_weight(bench.dtype) * static_cast<double>(n * k), seconds);
  }
}

// The products of a decoder's layers one after the other, as in a step of decoding: every weight
// comes from memory, and all members meet between two products.
void stack_shapes(const Bench& bench) {
  constexpr std::int64_t kLayers = 30;
  const std::pair<std::int64_t, std::int64_t> shapes[] = {
      {576, 960}, {576, 576}, {576, 3072}, {1536, 576}};
  std::vector<core::Buffer<float>> panels;
  double weights = 0;
  for (std::int64_t layer = 0; layer < kLayers; ++layer)
    for (const auto [k, n] : shapes) {
      panels.push_back(random_floats(packed_bytes(bench.dtype, n, k) / 4));
      weights += static_cast<double>(n * k);
      if (bench.dtype == PanelDtype::kF32) continue;
      const core::Buffer<float> from = random_floats(n * k);
      core::Buffer<float> scale(panels_of(n) * kPanel);
      ops().pack_transposed({.from = from.data(),
                             .ldf = k,
                             .n = n,
                             .k = k,
                             .to = PanelRoom(panels.back().data(), bench.dtype, scale.data())},
                            {0, panels_of(n)});
    }
  for (const std::int64_t m : {1, 2, 4, 8, 16, 32, 64}) {
    const core::Buffer<float> a = random_floats(m * 1536);
    core::Buffer<float> c = random_floats(m * 3072);
    const core::Buffer<float> scale = random_floats(3072);
    const float* const scales = bench.dtype == PanelDtype::kInt8 ? scale.data() : nullptr;
    const double seconds = bench.best_seconds([&](core::Team team) {
      std::size_t at = 0;
      for (std::int64_t layer = 0; layer < kLayers; ++layer)
        for (const auto [k, n] : shapes) {
          const Gemm g{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data(),
                       .lda = k,
                       .b = {panels[at++].data(), bench.dtype, scales},
                       .c = c.data(),
                       .ldc = n};
          const auto [begin, end] = team.share(panels_of(n));
          ops().gemm(g, {0, m}, {begin, end});
          if (at == panels.size()) continue;
          const auto [next_k, next_n] = shapes[at % 4];
          const auto [first, last] = team.share(panels_of(next_n));
          const std::int64_t bytes = panel_bytes(bench.dtype, next_k);
          team.barrier({reinterpret_cast<const char*>(panels[at].data()) + first * bytes,
                        (last - first) * bytes});
        }
    });
    bench.report(
        "stack", "\"m\":" + std::to_string(m) + ",\"dtype\":\"" + name_of(bench.dtype) + "\"",
        2.0 * static_cast<double>(m) * weights, bytes_of_weight(bench.dtype) * weights, seconds);
  }
}

// The two products of a linear layer's backward pass, operands as they lie: dX[m, k] = dY[m, n] W
// and dW[n, k] += dY^T X with X packed.
void backward_shape(const Bench& bench, std::int64_t m, std::int64_t k, std::int64_t n) {
  const core::Buffer<float> dy = random_floats(m * n), w = random_floats(n * k);
  const core::Buffer<float> x = random_floats(packed_size(k, m));
  core::Buffer<float> dx = random_floats(m * k), dw = random_floats(n * k);
  const Gemm input{.m = m,
                   .n = k,
                   .k = n,
                   .a = dy.data(),
                   .lda = n,
                   .b = w.data(),
                   .ldb = k,
                   .c = dx.data(),
                   .ldc = k};
  const Gemm weight{.m = n,
                    .n = k,
                    .k = m,
                    .a = dy.data(),
                    .lda = n,
                    .b = x.data(),
                    .a_by_columns = true,
                    .c = dw.data(),
                    .ldc = k,
                    .accumulate = true};
  const auto run = [&](const char* name, const Body& body) {
    bench.report(name,
                 "\"m\":" + std::to_string(m) + ",\"n\":" + std::to_string(n) +
                     ",\"k\":" + std::to_string(k),
                 2.0 * static_cast<double>(m * n * k), 4.0 * static_cast<double>(n * k),
                 bench.best_seconds(body));
  };
  run("input_grad", [&](core::Team team) { ops().gemm(input, {0, m}, team.share(panels_of(k))); });
  run("weight_grad", [&](core::Team team) {
    const auto [begin, end] = team.share(n);
    ops().gemm(weight, {begin, end}, {0, panels_of(k)});
  });
}

struct AttentionSetup {
  std::int64_t heads = 9, kv_heads = 3, dim = 64, rows, tokens;
  core::Buffer<float> q, out, lse, k, v, dout, dq, dk, dv;
  std::vector<Segment> segments;
  std::vector<std::int32_t> table;

  // `count` sequences of `length` tokens, the last `query` of each being rows; keys and values of
  // `layers` layers.
  AttentionSetup(std::int32_t count, std::int32_t length, std::int32_t query, std::int64_t layers)
      : rows(count * query), tokens(count * ((length + 15) / 16 * 16)) {
    q = random_floats(rows * heads * dim);
    out = random_floats(rows * heads * dim);
    lse = random_floats(rows * heads);
    k = random_floats(layers * layer_size());
    v = random_floats(layers * layer_size());
    dout = random_floats(rows * heads * dim);
    dq = random_floats(rows * heads * dim);
    dk = random_floats(k.size());
    dv = random_floats(k.size());
    for (std::int32_t i = 0; i < count; ++i) {
      segments.push_back({i * query, query, length - query, i * ((length + 15) / 16)});
      for (std::int32_t b = 0; b < (length + 15) / 16; ++b)
        table.push_back(static_cast<std::int32_t>(table.size()));
    }
  }
  std::int64_t layer_size() const { return tokens * kv_heads * dim; }
  Attention args() {
    return Attention{.heads = heads,
                     .kv_heads = kv_heads,
                     .head_dim = dim,
                     .scale = 0.125f,
                     .q = q.data(),
                     .ldq = heads * dim,
                     .k_pool = k.data(),
                     .v_pool = v.data(),
                     .segments = segments.data(),
                     .block_table = table.data(),
                     .out = out.data(),
                     .ldo = heads * dim,
                     .lse = lse.data()};
  }
  // Multiply-adds of the scores and weighted values, times two.
  double flops() const {
    double keys = 0.0;
    for (const Segment& s : segments)
      for (std::int32_t i = 0; i < s.rows; ++i)
        keys += s.first_position + i + 1;
    return 4.0 * keys * static_cast<double>(heads * dim);
  }
  double bytes() const { return 4.0 * static_cast<double>(k.size() + v.size()); }
};

void attention_case(const Bench& bench,
                    std::int32_t count,
                    std::int32_t length,
                    std::int32_t query,
                    std::int64_t layers = 1) {
  AttentionSetup setup(count, length, query, layers);
  const Attention a = setup.args();
  const std::string sizes =
      "\"sequences\":" + std::to_string(count) + ",\"length\":" + std::to_string(length) +
      ",\"rows\":" + std::to_string(query) + ",\"layers\":" + std::to_string(layers);
  const auto units = static_cast<std::int64_t>(setup.segments.size()) * setup.kv_heads;
  const double seconds = bench.best_seconds([&](core::Team team) {
    const auto [begin, end] = team.share(units);
    std::vector<AttentionItem> items;
    for (std::int64_t i = begin; i < end; ++i)
      items.push_back({static_cast<std::int32_t>(i / setup.kv_heads),
                       static_cast<std::int32_t>(i % setup.kv_heads), 0, query});
    Attention of_layer = a;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      of_layer.k_pool = a.k_pool.f32() + layer * setup.layer_size();
      of_layer.v_pool = a.v_pool.f32() + layer * setup.layer_size();
      ops().attention(of_layer, items.data(), std::ssize(items));
    }
  });
  const auto times = static_cast<double>(layers);
  bench.report("attention", sizes, times * setup.flops(), setup.bytes(), seconds);
  if (query == 1) return;
  const AttentionBackward back{.forward = a,
                               .dout = setup.dout.data(),
                               .lddo = setup.heads * setup.dim,
                               .dq = setup.dq.data(),
                               .lddq = setup.heads * setup.dim,
                               .dk_pool = setup.dk.data(),
                               .dv_pool = setup.dv.data()};
  const double backward = bench.best_seconds([&](core::Team team) {
    const auto [begin, end] = team.share(units);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto segment = static_cast<std::int32_t>(i / setup.kv_heads);
      const AttentionUnit unit{segment, segment + 1, static_cast<std::int32_t>(i % setup.kv_heads)};
      ops().attention_backward(back, &unit, 1);
    }
  });
  bench.report("attention_backward", sizes, 2.5 * setup.flops(), setup.bytes(), backward);
}

void rows_and_vocab(const Bench& bench) {
  constexpr std::int64_t kRows = 256, kVocab = 49152, kFfn = 1536, kHidden = 576;
  core::Buffer<float> logits = random_floats(16 * kVocab);
  core::Buffer<float> gates = random_floats(kRows * 2 * kFfn);
  core::Buffer<float> act = random_floats(kRows * kFfn);
  const core::Buffer<float> weight = random_floats(kHidden);
  core::Buffer<float> panels = random_floats(packed_size(kVocab, kHidden));
  const core::Buffer<float> embedding = random_floats(kVocab * kHidden);
  core::Buffer<float> m = random_floats(1 << 22), v = random_floats(1 << 22);
  core::Buffer<float> param = random_floats(1 << 22), grad = random_floats(1 << 22);
  for (std::int64_t i = 0; i < v.size(); ++i)
    v[i] = v[i] * v[i];
  const std::vector<std::int32_t> none(17);
  core::Buffer<double> norms((1 << 22) / kNormChunk);
  VocabGrad vocab_grad{.logits = logits.data(), .ld = kVocab, .vocab = kVocab};
  vocab_grad.lse = weight.data();
  vocab_grad.targets.begin = none.data();
  const auto run = [&](const char* name, double elements, double bytes, const Body& body) {
    const double seconds = bench.best_seconds(body);
    bench.report(name, "\"ns_per_element\":" + std::to_string(seconds * 1e9 / elements), 0.0, bytes,
                 seconds);
  };
  const std::vector<float> scales(16, 1.0f);
  std::vector<float> maxima(16 * (kVocab / kVocabBlock)), sums(maxima);
  const VocabRows vocab_rows{.logits = logits.data(),
                             .ld = kVocab,
                             .vocab = kVocab,
                             .inv_temperature = scales.data(),
                             .block_max = maxima.data(),
                             .block_sum = sums.data()};
  run("vocab_sums", 16.0 * kVocab, 64.0 * kVocab, [&](core::Team team) {
    ops().vocab_sums(vocab_rows, {0, 16}, team.share(kVocab / kVocabBlock));
  });
  run("vocab_grad", 16.0 * kVocab, 128.0 * kVocab, [&](core::Team team) {
    ops().vocab_grad(vocab_grad, {0, 16}, team.share(kVocab / kVocabBlock));
  });
  run("gate_mul", 1.0 * kRows * kFfn, 12.0 * kRows * kFfn, [&](core::Team team) {
    ops().gate_mul(
        {.ffn = kFfn, .gate_up = gates.data(), .ldg = 2 * kFfn, .y = act.data(), .ldy = kFfn},
        team.share(kRows));
  });
  run("rmsnorm", 1.0 * kRows * kHidden, 8.0 * kRows * kHidden, [&](core::Team team) {
    ops().rmsnorm({.d = kHidden,
                   .x = gates.data(),
                   .ldx = kHidden,
                   .weight = weight.data(),
                   .eps = 1e-5f,
                   .y = act.data(),
                   .ldy = kHidden},
                  team.share(kRows));
  });
  run("pack_transposed", 1.0 * kVocab * kHidden, 8.0 * kVocab * kHidden, [&](core::Team team) {
    ops().pack_transposed(
        {.from = embedding.data(), .ldf = kHidden, .n = kVocab, .k = kHidden, .to = panels.data()},
        team.share(panels_of(kVocab)));
  });
  run("pack_plain", 1.0 * kVocab * kHidden, 8.0 * kVocab * kHidden, [&](core::Team team) {
    ops().pack_plain(
        {.from = embedding.data(), .ldf = kHidden, .n = kHidden, .k = kVocab, .to = panels.data()},
        team.share(panels_of(kHidden)));
  });
  run("adamw", 1.0 * (1 << 22), 28.0 * (1 << 22), [&](core::Team team) {
    ops().adamw(AdamW{.param = param.data(),
                      .grad = grad.data(),
                      .m = m.data(),
                      .v = v.data(),
                      .lr = 1e-6f,
                      .beta1 = 0.9f,
                      .beta2 = 0.95f,
                      .eps = 1e-8f,
                      .weight_decay = 0.0f},
                team.share(1 << 22, 16));
  });
  run("sum_squares", 1.0 * (1 << 22), 4.0 * (1 << 22), [&](core::Team team) {
    ops().sum_squares({.x = grad.data(), .count = 1 << 22, .sums = norms.data()},
                      team.share((1 << 22) / kNormChunk));
  });
}

int run_all(const char* what, int threads, double budget_s, bool cpu, PanelDtype dtype) {
  Bench bench{.threads = threads, .budget_s = budget_s, .cpu = cpu, .dtype = dtype};
  {
    Calibration calibration(ops());
    bench.with_team([&](core::Team team) {
      const MachineLimits limits = calibration.measure(team);
      if (team.rank == 0) bench.limits = limits;
    });
  }
  std::printf(
      "{\"kernel\":\"limits\",\"isa\":\"%s\",\"threads\":%d,\"fma_gflops\":%.1f,"
      "\"read_gb_per_s\":%.1f}\n",
      ops().name, threads, bench.limits.fma_gflops, bench.limits.read_gb_per_s);
  const auto wanted = [&](const char* name) {
    return std::strcmp(what, "all") == 0 || std::strcmp(what, name) == 0;
  };
  if (wanted("gemm")) {
    gemm_shape(bench, 576, 960);
    gemm_shape(bench, 576, 3072);
    gemm_shape(bench, 1536, 576);
    gemm_shape(bench, 2048, 2048);
    gemm_shape(bench, 576, 49152);
  }
  if (wanted("stack")) stack_shapes(bench);
  if (wanted("backward")) {
    for (const auto& [k, n] : {std::pair<int, int>{576, 960}, {576, 3072}, {1536, 576}})
      for (const std::int64_t m : {256, 1072})
        backward_shape(bench, m, k, n);
    backward_shape(bench, 256, 576, 49152);
  }
  if (wanted("attention")) {
    attention_case(bench, 32, 200, 1);
    attention_case(bench, 32, 128, 1, 30);  // from memory, as in a step of decoding
    attention_case(bench, 1, 128, 1, 300);
    attention_case(bench, 2, 4096, 1);
    attention_case(bench, 4, 128, 128);
    attention_case(bench, 2, 1024, 1024);
  }
  if (wanted("rows")) rows_and_vocab(bench);
  return 0;
}

}  // namespace
}  // namespace troupe::kernels

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "all";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const double budget_ms = argc > 3 ? std::atof(argv[3]) : 100.0;
  const bool cpu = argc > 4 && std::strcmp(argv[4], "cpu") == 0;
  troupe::kernels::PanelDtype dtype{};
  if (argc > 5 && !troupe::kernels::parse_panel_dtype(argv[5], dtype)) {
    std::fprintf(stderr, "kernels_perf: no dtype %s\n", argv[5]);
    return 2;
  }
  return troupe::kernels::run_all(what, threads < 1 ? 1 : threads, budget_ms * 1e-3, cpu, dtype);
}
