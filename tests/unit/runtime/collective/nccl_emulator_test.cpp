// What the emulated NCCL must notice, or tests on it would prove little: shown on callers that are
// wrong on purpose.
#include "tests/unit/runtime/collective/device_gang.hpp"

namespace troupe::collective::test {
namespace {

using nccl::Code;
using nccl::DataType;

// Both ranks of a communicator, in this process. Made within the statement of a death test.
class TwoRanks {
 public:
  explicit TwoRanks(const troupe::test::TempFolder& folder, int devices = 2) {
    use_emulators(folder.path());
    library_ = *open_nccl({});
    nccl::UniqueId id{};
    TROUPE_CHECK(api().ncclGetUniqueId(&id) == Code::kSuccess, "an id");
    for (int rank = 0; rank < 2; ++rank) {
      devices_.push_back(*kernels::cuda::open_device(rank % devices));
      device(rank).enter();
      streams_.push_back(device(rank).open_stream());
      nccl::Config config;
      config.blocking = 0;
      communicators_.push_back(nullptr);
      api().ncclCommInitRankConfig(&communicators_.back(), 2, id, rank, &config);
      rooms_.emplace_back(100'000, device(rank).memory());
    }
  }

  const nccl::Api& api() const { return library_.api; }
  Device& device(int rank) { return *devices_[static_cast<std::size_t>(rank)]; }
  nccl::Communicator* of(int rank) { return communicators_[static_cast<std::size_t>(rank)]; }
  kernels::cuda::Stream& stream(int rank) { return *streams_[static_cast<std::size_t>(rank)]; }
  void close_stream(int rank) { streams_[static_cast<std::size_t>(rank)] = nullptr; }
  char* room(int rank) { return rooms_[static_cast<std::size_t>(rank)].data(); }

  Code ask(int rank) {
    Code code = Code::kSuccess;
    api().ncclCommGetAsyncError(of(rank), &code);
    return code;
  }
  void connect() {
    while (ask(0) == Code::kInProgress || ask(1) == Code::kInProgress) {
    }
  }
  // Sends from rank 0, without a group.
  void send(std::size_t bytes, int to = 1) {
    api().ncclSend(room(0), bytes, DataType::kUint8, to, of(0), stream(0).handle());
  }
  void receive(std::size_t bytes) {
    api().ncclRecv(room(1), bytes, DataType::kUint8, 0, of(1), stream(1).handle());
  }
  void broadcast(int rank, std::size_t bytes, int root) {
    api().ncclBroadcast(room(rank), room(rank), bytes, DataType::kUint8, root, of(rank),
                        stream(rank).handle());
  }
  // What both ranks do in a group each, until it is done.
  template <class Zero, class One>
  void both(const Zero& zero, const One& one) {
    api().ncclGroupStart();
    zero();
    api().ncclGroupEnd();
    api().ncclGroupStart();
    one();
    api().ncclGroupEnd();
    connect();
    for (bool done = false; !done;) {
      const bool first = stream(0).done(), second = stream(1).done();
      done = first && second;
    }
  }

 private:
  NcclLibrary library_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<kernels::cuda::Stream>> streams_;
  std::vector<nccl::Communicator*> communicators_;
  std::vector<core::Buffer<char>> rooms_;
};

using Caller = std::function<void(TwoRanks&)>;

// Dies with these words.
void expect_noticed(const char* words, const Caller& caller) {
  const troupe::test::TempFolder folder;
  EXPECT_DEATH(
      {
        TwoRanks ranks(folder);
        caller(ranks);
        std::fprintf(stderr, "not noticed\n");
        std::_Exit(0);
      },
      std::string("nccl emulator: ") + words);
}
// The same, with connected ranks and an open group.
void expect_noticed_in_group(const char* words, const Caller& caller) {
  expect_noticed(words, [&](TwoRanks& ranks) {
    ranks.connect();
    ranks.api().ncclGroupStart();
    caller(ranks);
  });
}

// In a process of its own: one that has an emulated device cannot fork others.
TEST(NcclEmulator, MovesBytes) {
  const troupe::test::TempFolder folder;
  Process process([&](const Line& line) {
    TwoRanks ranks(folder);
    ranks.connect();
    ranks.device(0).memory().upload(ranks.room(0), std::string(50'000, 'a').data(), 50'000);
    for (const int rank : {0, 1})
      ranks.device(rank).memory().wait();
    ranks.both([&] { ranks.send(50'000); }, [&] { ranks.receive(50'000); });
    std::string got(50'000, 'x');
    ranks.device(1).memory().download(got.data(), ranks.room(1), got.size());
    line.say(got == std::string(50'000, 'a') ? "right" : "wrong");
  });
  EXPECT_EQ(process.line().hear(), "right");
}

TEST(NcclEmulatorDeathTest, NoticesCommunicatorsThatAreNotThere) {
  expect_noticed("a communicator that is not there, or no longer", [](TwoRanks& ranks) {
    ranks.api().ncclCommAbort(ranks.of(0));
    ranks.ask(0);
  });
  expect_noticed("a communicator that is not there", [](TwoRanks& ranks) {
    ranks.api().ncclCommAbort(ranks.of(0));
    ranks.api().ncclCommAbort(ranks.of(0));
  });
  expect_noticed("a communicator that is not there", [](TwoRanks& ranks) {
    ranks.connect();
    ranks.api().ncclCommAbort(ranks.of(0));
    ranks.api().ncclGroupStart();
    ranks.send(8);
  });
  expect_noticed_in_group("a communicator is aborted within a group", [](TwoRanks& ranks) {
    ranks.send(8);
    ranks.api().ncclCommAbort(ranks.of(0));
  });
}

TEST(NcclEmulatorDeathTest, NoticesCommunicatorsThatMayBlockOrAreThereTwice) {
  expect_noticed("a communicator that may block", [](TwoRanks& ranks) {
    nccl::Config config;
    nccl::Communicator* made = nullptr;
    ranks.api().ncclCommInitRankConfig(&made, 2, {}, 0, &config);
  });
  expect_noticed("a rank is there twice", [](TwoRanks& ranks) {
    nccl::Config config;
    config.blocking = 0;
    nccl::Communicator* made = nullptr;
    ranks.api().ncclCommInitRankConfig(&made, 2, {}, 0, &config);
    ranks.api().ncclCommInitRankConfig(&made, 2, {}, 0, &config);
  });
  expect_noticed("a communicator for a rank that cannot be", [](TwoRanks& ranks) {
    nccl::Config config;
    nccl::Communicator* made = nullptr;
    ranks.api().ncclCommInitRankConfig(&made, 2, {}, 2, &config);
  });
}

TEST(NcclEmulatorDeathTest, NoticesGroupsThatAreNone) {
  expect_noticed("a group ends that has not begun",
                 [](TwoRanks& ranks) { ranks.api().ncclGroupEnd(); });
  expect_noticed_in_group("a group in a group",
                          [](TwoRanks& ranks) { ranks.api().ncclGroupStart(); });
  expect_noticed_in_group("a communicator is asked within a group",
                          [](TwoRanks& ranks) { ranks.ask(0); });
  expect_noticed("an operation outside of a group", [](TwoRanks& ranks) {
    ranks.connect();
    ranks.send(8);
  });
}

TEST(NcclEmulatorDeathTest, NoticesWhatComesBeforeTheLastCallIsDone) {
  expect_noticed("an operation before the last call is done", [](TwoRanks& ranks) {
    ranks.api().ncclGroupStart();
    ranks.send(8);
  });
  expect_noticed_in_group("an operation before the last call is done", [](TwoRanks& ranks) {
    ranks.send(8);
    ranks.api().ncclGroupEnd();
    ranks.api().ncclGroupStart();
    ranks.send(8);
  });
}

TEST(NcclEmulatorDeathTest, NoticesOperationsThatCannotBe) {
  expect_noticed_in_group("an operation on memory that is not the device's", [](TwoRanks& ranks) {
    char byte = 0;
    ranks.api().ncclSend(&byte, 1, DataType::kUint8, 1, ranks.of(0), ranks.stream(0).handle());
  });
  expect_noticed_in_group("an operation on memory that is not the device's",
                          [](TwoRanks& ranks) { ranks.send(1'000'000); });
  expect_noticed_in_group("an operation on no bytes", [](TwoRanks& ranks) {
    ranks.api().ncclSend(ranks.room(0), 8, static_cast<DataType>(7), 1, ranks.of(0),
                         ranks.stream(0).handle());
  });
  expect_noticed_in_group("an operation with nothing to move",
                          [](TwoRanks& ranks) { ranks.send(0); });
  expect_noticed_in_group("an operation with a rank that is not there",
                          [](TwoRanks& ranks) { ranks.send(8, 2); });
}

TEST(NcclEmulatorDeathTest, NoticesStreamsThatDoNotBelong) {
  expect_noticed_in_group("a stream that is not of the device", [](TwoRanks& ranks) {
    ranks.api().ncclSend(ranks.room(0), 8, DataType::kUint8, 1, ranks.of(0),
                         ranks.stream(1).handle());
  });
  expect_noticed_in_group("a stream that is not of the device", [](TwoRanks& ranks) {
    ranks.api().ncclSend(ranks.room(0), 8, DataType::kUint8, 1, ranks.of(0), nullptr);
  });
  expect_noticed_in_group("a stream that is not of the device", [](TwoRanks& ranks) {
    void* const stream = ranks.stream(0).handle();
    ranks.close_stream(0);
    ranks.api().ncclSend(ranks.room(0), 8, DataType::kUint8, 1, ranks.of(0), stream);
  });
  expect_noticed_in_group("a communicator changes its stream", [](TwoRanks& ranks) {
    const auto other = ranks.device(0).open_stream();
    ranks.send(8);
    ranks.api().ncclSend(ranks.room(0), 8, DataType::kUint8, 1, ranks.of(0), other->handle());
  });
}

// A device cannot end a stream on which NCCL works, whose rank 1 does nothing here.
TEST(NcclEmulatorDeathTest, TheDeviceNoticesStreamsThatEndUnderWork) {
  const troupe::test::TempFolder folder;
  EXPECT_DEATH(
      {
        TwoRanks ranks(folder);
        ranks.connect();
        ranks.api().ncclGroupStart();
        ranks.send(50'000);
        ranks.api().ncclGroupEnd();
        while (ranks.ask(0) == Code::kInProgress) {
        }
        ranks.close_stream(0);
      },
      "cuda emulator: a stream is destroyed while a library works on it");
}

TEST(NcclEmulatorDeathTest, NoticesRanksThatDoNotDoTheSame) {
  const auto both = [](const char* words, const Caller& zero, const Caller& one) {
    expect_noticed(words, [&](TwoRanks& ranks) {
      ranks.connect();
      ranks.both([&] { zero(ranks); }, [&] { one(ranks); });
    });
  };
  both(
      "rank 1 is in send or recv 0 of 9 bytes, rank 0 in send or recv 0 of 8 bytes",
      [](TwoRanks& ranks) { ranks.send(8); }, [](TwoRanks& ranks) { ranks.receive(9); });
  both(
      "rank 1 is in send or recv 0 of 8 bytes, rank 0 in broadcast from 0, 0 of 8 bytes",
      [](TwoRanks& ranks) { ranks.broadcast(0, 8, 0); }, [](TwoRanks& ranks) { ranks.receive(8); });
  both(
      "rank 1 is in broadcast from 0, 1 of 8 bytes, rank 0 in broadcast from 0, 0 of 8 bytes",
      [](TwoRanks& ranks) { ranks.broadcast(0, 8, 0); },
      [](TwoRanks& ranks) {
        ranks.broadcast(1, 8, 1);
        ranks.broadcast(1, 8, 0);
      });
}

TEST(NcclEmulator, RefusesTwoRanksOnOneDevice) {
  const troupe::test::TempFolder folder;
  Process process([&](const Line& line) {
    TwoRanks ranks(folder, 1);
    while (ranks.ask(0) == Code::kInProgress) {
    }
    line.say(ranks.ask(0) == Code::kInvalidUsage ? "refused" : "taken");
  });
  EXPECT_EQ(process.line().hear(), "refused");
}

}  // namespace
}  // namespace troupe::collective::test
