// A gang whose ranks are threads of the test, connected as processes of one host are.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/collective/collectives.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

namespace troupe::learn::test {

// Runs `body` on each of `size` ranks and waits for all.
inline void run_ranks(int size, const std::function<void(collective::Collectives&)>& body) {
  const troupe::test::TempFolder folder;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      kernels::flush_denormals();
      collective::RankOptions options;
      options.gang = {core::RunId{7}, "policy", 1};
      options.rank = rank;
      options.size = size;
      options.window_bytes = 1 << 16;
      collective::Collectives gang(options);
      collective::FolderRendezvous rendezvous(folder.path());
      const auto connected = gang.connect(rendezvous);
      ASSERT_TRUE(connected) << connected.error().message;
      body(gang);
    });
  }
}

}  // namespace troupe::learn::test
