// Operations between devices: every byte is the oracle's and went from device to device; a rank
// killed, frozen, aborted or failing within them; ranks that do not agree.
#include "tests/unit/runtime/collective/device_gang.hpp"
#include "tests/unit/runtime/collective/sequence.hpp"

#include <set>
#include <thread>

namespace troupe::collective::test {
namespace {

using ::testing::Values;

struct DrawnOnDevices {
  int ranks;
  Ways ways;
  std::uint64_t seed;
  int operations;
  std::size_t size_max;
};

class NcclSequences : public ::testing::TestWithParam<DrawnOnDevices> {};

// Beside each operation on devices, another one in host memory, which goes through the pipes.
TEST_P(NcclSequences, EveryByteIsTheOraclesAndGoesFromDeviceToDevice) {
  const DrawnOnDevices drawn = GetParam();
  DeviceGang gang(
      drawn.ranks,
      [&](Collectives& ranks, Device& device, const Line& line) -> core::Result<void> {
        const std::uint64_t meetings = ranks.sent_bytes() + ranks.received_bytes();
        Sequence on_devices(ranks, drawn.seed, drawn.size_max, device.memory());
        Sequence on_hosts(ranks, drawn.seed + 100, 1000, core::host_memory());
        for (int i = 0; i < drawn.operations; ++i) {
          TROUPE_TRY(on_devices.step());
          TROUPE_TRY(on_hosts.step());
        }
        const std::uint64_t moved = on_devices.sent() + on_devices.received();
        line.say(ranks.link_name() + ": " + std::to_string(on_devices.wrong() + on_hosts.wrong()) +
                 " wrong" +
                 (emulator_says<std::uint64_t>("moved") == moved ? "" : ", moved otherwise") +
                 (ranks.sent_bytes() + ranks.received_bytes() - meetings ==
                          moved + on_hosts.sent() + on_hosts.received()
                      ? ""
                      : ", counted otherwise"));
        return {};
      },
      {.ways = drawn.ways});
  gang.expect_all("NCCL 2.28.9: 0 wrong");
  gang.expect_all("well");
}

INSTANTIATE_TEST_SUITE_P(All,
                         NcclSequences,
                         Values(DrawnOnDevices{2, Ways::kWindow, 1, 60, 30'000},
                                DrawnOnDevices{3, Ways::kWindow, 2, 60, 30'000},
                                DrawnOnDevices{5, Ways::kWindow, 3, 30, 9'000},
                                DrawnOnDevices{3, Ways::kStream, 4, 30, 30'000},
                                DrawnOnDevices{4, Ways::kMixed, 5, 30, 30'000},
                                DrawnOnDevices{2, Ways::kWindow, 6, 8, 3'000'000}),
                         [](const auto& drawn) {
                           return "seed" + std::to_string(drawn.param.seed);
                         });

// ---- a rank that is killed, frozen, aborted, or fails, in the middle of the bytes ----

enum class DeviceOp { kBroadcast, kBroadcastTo, kAllGather, kAllToAll, kSend, kReceive };
constexpr std::int64_t kPart = 100'000;  // many times what is under way at one time

// One operation of 3 ranks, in which rank 1 sends or gets most. What must be on rank `r` afterwards
// for the part of rank `s` begins with the letter of s.
core::Result<void> perform_on(DeviceOp op, Collectives& ranks, Device& device, std::string& wrong) {
  const int rank = ranks.rank();
  core::Buffer<char> mine(kPart, device.memory()), all(3 * kPart, device.memory());
  mine.upload(std::vector<char>(kPart, static_cast<char>('a' + rank)));
  const auto size = static_cast<std::size_t>(kPart);
  const std::vector<Source> out(3, Source{mine.data(), size});
  const std::vector<Place> in{
      {all.data(), size}, {all.data() + kPart, size}, {all.data() + 2 * kPart, size}};
  std::set<int> got;
  const int from = op == DeviceOp::kReceive || op == DeviceOp::kBroadcastTo ? 0 : 1;
  switch (op) {
    case DeviceOp::kBroadcast:
    case DeviceOp::kBroadcastTo:
      if (rank == from)
        device.memory().copy(in[static_cast<std::size_t>(from)].at, mine.data(), size);
      TROUPE_TRY(ranks.broadcast(from, in[static_cast<std::size_t>(from)], device.memory()));
      got = {from};
      break;
    case DeviceOp::kAllGather:
      TROUPE_TRY(ranks.all_gather(out[0], in, device.memory()));
      got = {0, 1, 2};
      break;
    case DeviceOp::kAllToAll:
      TROUPE_TRY(ranks.all_to_all(out, in, device.memory()));
      got = {0, 1, 2};
      break;
    default:
      if (rank == from) TROUPE_TRY(ranks.send(1 - from, out[0], device.memory()));
      if (rank == 1 - from) {
        TROUPE_TRY(ranks.recv(from, in[static_cast<std::size_t>(from)], device.memory()));
        got = {from};
      }
  }
  std::vector<char> bytes(3 * kPart);
  all.download(bytes);
  for (const int other : got)
    for (std::int64_t i = 0; i < kPart; ++i)
      if (bytes[static_cast<std::size_t>(other * kPart + i)] != 'a' + other) wrong = "wrong";
  return ranks.barrier();
}

class NcclFaults : public ::testing::TestWithParam<DeviceOp> {
 protected:
  // All ranks do the operation; rank 1 has the modes.
  static DeviceGang::Body body() {
    return [](Collectives& ranks, Device& device, const Line& line) -> core::Result<void> {
      std::string words = "right";
      TROUPE_TRY(perform_on(GetParam(), ranks, device, words));
      line.say(words);
      return {};
    };
  }
  static Setting with(const std::string& modes) {
    Setting setting;
    setting.modes = [modes](int rank) { return rank == 1 ? modes : ""; };
    return setting;
  }
};

TEST_P(NcclFaults, ARankThatIsKilledInsideIsNamedToAll) {
  DeviceGang gang(3, body(), with("kill:7"));
  for (const int rank : {0, 2})
    EXPECT_EQ(gang.hear(rank), "peer lost: rank 1 of policy is gone") << "rank " << rank;
  EXPECT_EQ(gang.hear(1), "end");
}

// NCCL says that something is wrong before rank 1 is gone. The loss is the cause all the same.
TEST_P(NcclFaults, ALossThatNcclNoticesFirstIsNamed) {
  DeviceGang gang(3, body(), with("die:7"));
  for (const int rank : {0, 2})
    EXPECT_EQ(gang.hear(rank), "peer lost: rank 1 of policy is gone") << "rank " << rank;
}

TEST_P(NcclFaults, ARankThatWasFrozenInsideIsWaitedFor) {
  DeviceGang gang(3, body(), with("stop:7"));
  gang.rank(1).wait_until_stopped();
  gang.rank(1).go_on();
  gang.expect_all("right");
  gang.expect_all("well");
}

// Whether its work stays on the stream or not.
TEST_P(NcclFaults, AnErrorOfNcclEndsTheGangWithItsWords) {
  for (const char* const mode : {"error:7", "end:7"}) {
    DeviceGang gang(3, body(), with(mode));
    gang.expect_all(
        "peer lost: rank 1 of policy: NCCL 2.28.9, moving bytes between devices: remote process "
        "exited or there was a network error (emulated)");
  }
}

// Rank 1 stands still; rank 0 is told to give up.
TEST_P(NcclFaults, AbortEndsWhatIsUnderWay) {
  DeviceGang gang(
      3,
      [](Collectives& ranks, Device& device, const Line& line) -> core::Result<void> {
        std::thread aborter;
        if (ranks.rank() == 0) {
          aborter = std::thread([&] {
            line.hear();
            ranks.abort();
          });
        }
        std::string words;
        const auto done = perform_on(GetParam(), ranks, device, words);
        if (aborter.joinable()) aborter.join();
        line.say(emulator_says<int>("open") == 0 ? "no communicator left" : "a communicator");
        return done;
      },
      with("stop:7"));
  gang.rank(1).wait_until_stopped();
  gang.rank(0).line().say("abort");
  for (const int rank : {0, 2}) {
    EXPECT_EQ(gang.hear(rank), "no communicator left");
    EXPECT_EQ(gang.hear(rank), rank == 0 ? "closed: rank 0 of policy was aborted"
                                         : "peer lost: rank 0 of policy was aborted");
  }
  gang.rank(1).go_on();
  EXPECT_EQ(gang.hear(1), "no communicator left");
  EXPECT_EQ(gang.hear(1), "peer lost: rank 0 of policy was aborted");
}

std::string name_of_op(const ::testing::TestParamInfo<DeviceOp>& info) {
  const char* const names[] = {"Broadcast", "BroadcastTo", "AllGather",
                               "AllToAll",  "Send",        "Receive"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All,
                         NcclFaults,
                         Values(DeviceOp::kBroadcast,
                                DeviceOp::kBroadcastTo,
                                DeviceOp::kAllGather,
                                DeviceOp::kAllToAll,
                                DeviceOp::kSend,
                                DeviceOp::kReceive),
                         name_of_op);

TEST(Nccl, AGangThatEndsLeavesNoCommunicator) {
  const troupe::test::TempFolder meeting, folder;
  const auto body = [&](int rank) {
    return [&, rank](const Line& line) {
      use_emulators(folder.path());
      auto device = kernels::cuda::open_device(rank);
      if (!device) return line.say(words_of(device.error()));
      {
        Collectives ranks(options_of(rank, 2, Ways::kWindow));
        FolderRendezvous rendezvous(meeting.path());
        (void)ranks.connect(rendezvous);
        (void)ranks.use(make_nccl_link(**device, {}));
        (void)ranks.barrier();
        line.say(std::to_string(emulator_says<int>("open")) + " open");
      }
      line.say(std::to_string(emulator_says<int>("open")) + " open");
    };
  };
  Process first(body(0)), second(body(1));
  for (const Process* one : {&first, &second}) {
    EXPECT_EQ(one->line().hear(), "1 open");
    EXPECT_EQ(one->line().hear(), "0 open");
    EXPECT_EQ(one->line().hear(), "end");
  }
}

// Rank 1 has all bytes, and rank 0 has nothing more to do, when rank 1 is killed. An operation in
// which a rank has left while another one may still read its memory would be a success here.
TEST(Nccl, NobodyIsDoneBeforeAllAre) {
  Setting setting;
  setting.modes = [](int rank) { return rank == 1 ? "kill:1" : ""; };
  DeviceGang gang(
      2,
      [](Collectives& ranks, Device& device, const Line&) -> core::Result<void> {
        core::Buffer<char> room(100, device.memory());
        if (ranks.rank() == 0) return ranks.send(1, {room.data(), 100}, device.memory());
        return ranks.recv(0, {room.data(), 100}, device.memory());
      },
      setting);
  EXPECT_EQ(gang.hear(0), "peer lost: rank 1 of policy is gone");
  EXPECT_EQ(gang.hear(1), "end");
}

// ---- ranks that do not agree: an error before anything reaches NCCL, which would wait for ever
// ----

struct DeviceDisagreement {
  std::string name, zero, one;  // what ranks 0 and 1 are in, as the error says it
  std::function<core::Result<void>(Collectives&, char*at, core::Memory&)> in_zero, in_one;
};

TEST(Nccl, DisagreementsAreErrorsAndNothingMoves) {
  const auto broadcast = [](int root, std::size_t bytes) {
    return [=](Collectives& ranks, char* at, core::Memory& memory) {
      return ranks.broadcast(root, {at, bytes}, memory);
    };
  };
  const auto in_host_memory = [](Collectives& ranks, char*, core::Memory&) {
    char byte[8];
    return ranks.broadcast(0, {byte, 8});
  };
  const auto barrier = [](Collectives& ranks, char*, core::Memory&) { return ranks.barrier(); };
  const std::string to_one =
      "broadcast from rank 0 from device to device, sending 8 bytes and expecting 0";
  const DeviceDisagreement all[] = {
      {"sizes", to_one,
       "broadcast from rank 0 from device to device, sending 0 bytes and expecting 9",
       broadcast(0, 8), broadcast(0, 9)},
      {"roots", to_one,
       "broadcast from rank 1 from device to device, sending 8 bytes and expecting 0",
       broadcast(0, 8), broadcast(1, 8)},
      {"operations", to_one, "barrier, sending 0 bytes and expecting 0", broadcast(0, 8), barrier},
      {"memories", to_one, "broadcast from rank 0, sending 0 bytes and expecting 8",
       broadcast(0, 8), in_host_memory},
  };
  for (const DeviceDisagreement& one : all) {
    DeviceGang gang(2, [&](Collectives& ranks, Device& device, const Line& line) {
      core::Buffer<char> room(16, device.memory());
      const auto done =
          (ranks.rank() == 0 ? one.in_zero : one.in_one)(ranks, room.data(), device.memory());
      line.say(std::to_string(emulator_says<std::uint64_t>("moved")) + " moved");
      return done;
    });
    for (const int rank : {0, 1}) {
      EXPECT_EQ(gang.hear(rank), "0 moved");
      const std::string said = gang.hear(rank);
      EXPECT_NE(said.find("ranks do not agree"), said.npos) << one.name << ": " << said;
      EXPECT_NE(said.find(one.zero), said.npos) << one.name << ": " << said;
      EXPECT_NE(said.find(one.one), said.npos) << one.name << ": " << said;
    }
  }
}

// Work of the device's own stream that is not done when an operation begins, and work after it.
TEST(Nccl, OperationsAreInTheOrderOfTheDevicesOwnWork) {
  DeviceGang gang(
      2, [](Collectives& ranks, Device& device, const Line& line) -> core::Result<void> {
        core::Buffer<char> first(1000, device.memory()), second(1000, device.memory());
        core::Buffer<char> got(1000, device.memory()), last(1000, device.memory());
        first.upload(std::vector<char>(1000, static_cast<char>('a' + ranks.rank())));
        device.memory().copy(second.data(), first.data(), 1000);
        if (ranks.rank() == 0) TROUPE_TRY(ranks.send(1, {second.data(), 1000}, device.memory()));
        if (ranks.rank() == 1) TROUPE_TRY(ranks.recv(0, {got.data(), 1000}, device.memory()));
        device.memory().copy(last.data(), ranks.rank() == 0 ? second.data() : got.data(), 1000);
        std::vector<char> bytes(1000);
        last.download(bytes);
        line.say(bytes == std::vector<char>(1000, 'a') ? "right" : "wrong");
        return {};
      });
  gang.expect_all("right");
}

}  // namespace
}  // namespace troupe::collective::test
