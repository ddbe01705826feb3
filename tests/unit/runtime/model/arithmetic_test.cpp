// Names of classes of arithmetic: one for all levels of the processor and all devices, and another
// as soon as one operation gives other bits.
#include "runtime/model/arithmetic.hpp"

#include "kernels/cuda/device.hpp"
#include "kernels/ops.hpp"
#include "tests/unit/runtime/model/device_team.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe::model {
namespace {

using kernels::Ops;
using kernels::PanelDtype;
constexpr PanelDtype kExact[] = {PanelDtype::kF32, PanelDtype::kBf16};

// One thread with a table of its own.
class TableTeam final : public core::TeamRunner {
 public:
  explicit TableTeam(const Ops& table) : table_(table) {}
  void run(const std::function<void(core::Team)>& region) override {
    const kernels::UseOps use(table_);
    region(core::Team{});
  }
  int size() const noexcept override { return 1; }

 private:
  const Ops table_;
};

TEST(ArithmeticName, IsThatOfEveryLevelAndNumberOfThreads) {
  core::SerialTeam one;
  PairTeam two;
  std::set<std::string> names;
  for (const PanelDtype dtype : kExact) {
    const std::string name = arithmetic_name(one, dtype);
    EXPECT_EQ(arithmetic_name(two, dtype), name);
    for (const auto isa : {kernels::Isa::kReference, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
      if (!kernels::isa_available(isa)) continue;
      TableTeam level(kernels::ops_for(isa));
      EXPECT_EQ(arithmetic_name(level, dtype), name) << kernels::ops_for(isa).name;
    }
    EXPECT_TRUE(name.starts_with(std::string(kernels::name_of(dtype)) + "/v1/")) << name;
    EXPECT_EQ(name.size(), std::string(kernels::name_of(dtype)).size() + 4 + 16) << name;
    names.insert(name.substr(name.rfind('/')));
  }
  EXPECT_EQ(names.size(), 2u) << "each rounds weights in its own way";
}

// The committed names: a run that was saved by an earlier build goes on with this one. They change
// with kArithmeticVersion alone.
TEST(ArithmeticName, IsTheOneThatCheckpointsHave) {
  core::SerialTeam team;
  EXPECT_EQ(arithmetic_name(team, PanelDtype::kF32), "f32/v1/f12f002bd5bbdb72");
  EXPECT_EQ(arithmetic_name(team, PanelDtype::kBf16), "bf16/v1/f74f4d39c6b4805e");
}

class ArithmeticOfDevice : public OnDevice<::testing::Test> {};

TEST_F(ArithmeticOfDevice, IsTheHostsUnlessItComputesOnTensorCores) {
  core::SerialTeam host;
  for (const PanelDtype dtype : kExact)
    EXPECT_EQ(arithmetic_name(device(), dtype), arithmetic_name(host, dtype));
  const std::string host_name = arithmetic_name(host, PanelDtype::kBf16Compute);
  EXPECT_TRUE(host_name.starts_with("bf16-compute/v1/cpu/")) << host_name;
  if (dynamic_cast<kernels::cuda::DeviceTeam*>(&device()) == nullptr) return;
  const std::string name = arithmetic_name(device(), PanelDtype::kBf16Compute);
  EXPECT_TRUE(
      name.starts_with("bf16-compute/v1/abi" + std::to_string(kernels::cuda::kAbi) + "/sm_"))
      << name;
  EXPECT_NE(name.substr(name.rfind('/')), host_name.substr(host_name.rfind('/')));
}

// ---- operations that are a little wrong ----

void spoil(float& x) {
  x *= 1.0f + 0x1p-20f;
}

void wrong_gemm(const kernels::Gemm& g, core::Range rows, core::Range panels) {
  kernels::host_ops().gemm(g, rows, panels);
  for (std::int64_t row = rows.begin; row < rows.end && panels.begin == 0; ++row)
    spoil(g.c[row * g.ldc]);
}
void wrong_pack(const kernels::Pack& p, core::Range panels) {
  kernels::host_ops().pack_transposed(p, panels);
  if (!panels.empty() && p.to.dtype == PanelDtype::kF32) spoil(static_cast<float*>(p.to.data)[0]);
}
void wrong_norm(const kernels::RmsNorm& n, core::Range rows) {
  kernels::host_ops().rmsnorm(n, rows);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    spoil(n.y[row * n.ldy]);
}
void wrong_rope(const kernels::Rope& r, core::Range rows) {
  kernels::host_ops().rope(r, rows);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    spoil(r.x[row * r.ldx]);
}
void wrong_gate(const kernels::GateMul& g, core::Range rows) {
  kernels::host_ops().gate_mul(g, rows);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    spoil(g.y[row * g.ldy]);
}
void wrong_attention(const kernels::Attention& a,
                     const kernels::AttentionItem* items,
                     std::int64_t count) {
  kernels::host_ops().attention(a, items, count);
  for (std::int64_t i = 0; i < count; ++i)
    spoil(a.out[(a.segments[items[i].segment].first_row + items[i].row_begin) * a.ldo]);
}
void wrong_embedding(const kernels::EmbedRows& e, core::Range rows) {
  kernels::host_ops().embed_rows(e, rows);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    spoil(e.x[row * e.hidden]);
}
void wrong_cap(const kernels::SoftCap& s, core::Range rows) {
  kernels::host_ops().softcap(s, rows);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    spoil(s.x[row * s.ldx]);
}
void wrong_sums(const kernels::VocabRows& v, core::Range rows, core::Range blocks) {
  kernels::host_ops().vocab_sums(v, rows, blocks);
  const std::int64_t all = (v.vocab + kernels::kVocabBlock - 1) / kernels::kVocabBlock;
  for (std::int64_t row = rows.begin; row < rows.end && blocks.begin == 0; ++row)
    spoil(v.block_sum[row * all]);
}
void wrong_finish(const kernels::VocabFinish& v, core::Range rows) {
  kernels::host_ops().vocab_finish(v, rows);
  for (std::int64_t row = rows.begin; row < rows.end && v.entropy != nullptr; ++row)
    spoil(v.entropy[row]);
}

TEST(ArithmeticName, ChangesWithAnyOperationOfTheForwardPass) {
  core::SerialTeam right;
  const std::string name = arithmetic_name(right, PanelDtype::kF32);
  const Ops& ops = kernels::host_ops();
  const std::pair<const char*, void (*)(Ops&)> faults[] = {
      {"gemm", [](Ops& o) { o.gemm = wrong_gemm; }},
      {"pack_transposed", [](Ops& o) { o.pack_transposed = wrong_pack; }},
      {"rmsnorm", [](Ops& o) { o.rmsnorm = wrong_norm; }},
      {"rope", [](Ops& o) { o.rope = wrong_rope; }},
      {"gate_mul", [](Ops& o) { o.gate_mul = wrong_gate; }},
      {"attention", [](Ops& o) { o.attention = wrong_attention; }},
      {"embed_rows", [](Ops& o) { o.embed_rows = wrong_embedding; }},
      {"softcap", [](Ops& o) { o.softcap = wrong_cap; }},
      {"vocab_sums", [](Ops& o) { o.vocab_sums = wrong_sums; }},
      {"vocab_finish", [](Ops& o) { o.vocab_finish = wrong_finish; }}};
  for (const auto& [op, change] : faults) {
    Ops table = ops;
    TableTeam same(table);
    EXPECT_EQ(arithmetic_name(same, PanelDtype::kF32), name);
    change(table);
    TableTeam wrong(table);
    EXPECT_NE(arithmetic_name(wrong, PanelDtype::kF32), name) << op;
  }
}

}  // namespace
}  // namespace troupe::model
