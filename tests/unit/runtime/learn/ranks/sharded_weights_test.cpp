// Weights that ranks have divided: what is there during a pass, and that a rank keeps the pages of
// its own blocks alone.
#include "runtime/learn/ranks/sharded_weights.hpp"

#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace troupe::learn {
namespace {

// About 2 M numbers: 8 MiB, of which a block of 4,096 takes four pages.
model::ModelSpec larger_spec() {
  model::ModelSpec spec = tiny_spec();
  spec.layers = 4;
  spec.hidden = 192;
  spec.head_dim = 48;
  spec.ffn = 512;
  return spec;
}

// Pages of the block that the system holds in memory.
std::int64_t resident_pages(const void* block, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(block) / page * page;
  const std::size_t count = (reinterpret_cast<std::uintptr_t>(block) + bytes - begin) / page;
  std::vector<unsigned char> pages(count);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), count * page, pages.data()), 0);
  std::int64_t resident = 0;
  for (const unsigned char one : pages)
    resident += one & 1;
  return resident;
}

TEST(ShardedWeights, APassHasEachPartInTurnAndARankKeepsItsBlocks) {
  const auto start = test::start_weights(larger_spec());
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam team;
    RankGroup group(gang);
    model::ParamStore master = start->to(core::host_memory());
    const auto bytes = static_cast<std::size_t>(master.size()) * sizeof(float);
    ShardedWeights weights(group, master, kernels::PanelDtype::kF32, team);
    EXPECT_TRUE(weights.whole());
    const auto parts = model::ranges_of_parts(master.spec(), master.layout());
    const auto has = [&](core::Range range) {
      return std::equal(master.data() + range.begin, master.data() + range.end,
                        start->data() + range.begin);
    };
    weights.begin_pass();
    EXPECT_FALSE(weights.whole());
    const std::int64_t divided = resident_pages(master.data(), bytes);
    EXPECT_FALSE(has(parts[1].front()));
    EXPECT_LE(divided, resident_pages(start->data(), bytes) * 4 / 10);
    for (std::int64_t part = 0; part < std::ssize(parts); ++part) {
      weights.open(part, false);
      for (const core::Range range : parts[static_cast<std::size_t>(part)])
        EXPECT_TRUE(has(range)) << part;
      weights.close(part, false);
    }
    EXPECT_EQ(resident_pages(master.data(), bytes), divided);
    // One rank stops here and walks the way back; the others compute it.
    for (std::int64_t part = std::ssize(parts) - 1; part > 0 && gang.rank() != 1; --part) {
      weights.open(part, true);
      EXPECT_TRUE(has(parts[static_cast<std::size_t>(part)].front())) << part;
      weights.close(part, true);
    }
    ASSERT_TRUE(weights.finish_pass(true));
    ASSERT_TRUE(weights.gather_all());
    EXPECT_TRUE(has({0, master.size()}));
  });
}

}  // namespace
}  // namespace troupe::learn
