// The bytes between two ranks of a gang. While the gang forms: the listening rank sends a
// Challenge, the dialling one a Hello with its proof, and gets a Verdict with the other's proof.
// Both proofs are HMAC-SHA256 with the gang's key (net::keyed_proof) over both nonces and the
// hello, so neither the key nor anything that could be used again goes over the connection. In a
// call: a MessageHead to every rank that takes part, then the bytes for it. Beside them, on the
// control connection: single bytes, and a Farewell. Integers are little-endian, as on x86-64. Pure
// functions, except for the nonces.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::collective {

inline constexpr std::uint64_t kRankMagic = 0x31304c4f43505254;  // "TRPCOL01"
inline constexpr std::size_t kNonce_chars = 32;

// The processes that speak to each other: the ranks of one role, of one run, started together.
struct GangId {
  core::RunId run;
  std::string role;              // "policy"; at most 63 characters
  std::uint64_t generation = 0;  // grows with each start of the gang
};

// A pair of ranks on one host has the first alone; the bytes go through shared memory.
enum class Channel : std::uint32_t { kControl = 1, kBytes = 2 };

struct Challenge {
  std::uint64_t magic = kRankMagic;
  char nonce[kNonce_chars] = {};
};
static_assert(sizeof(Challenge) == 40);

struct Hello {
  std::uint64_t magic = kRankMagic;
  std::uint64_t run = 0;
  std::uint64_t generation = 0;
  char role[64] = {};  // ended by a zero
  std::uint32_t from = 0, to = 0, size = 0;
  Channel channel = Channel::kControl;
  std::uint32_t shares_memory = 0;  // both exchange a WindowOffer after the verdict
  std::uint32_t reserved = 0;
  char nonce[kNonce_chars] = {};
  char proof[32] = {};  // over all of the above
};
static_assert(sizeof(Hello) == 176);

enum class Admitted : std::uint32_t {
  kWelcome = 1,
  kNotProven = 2,
  kOtherRun = 3,
  kOtherRole = 4,
  kOtherGeneration = 5,
  kOtherSize = 6,
  kWrongRank = 7,  // not a rank that dials this one
  kTaken = 8,      // this rank is connected already
};

struct Verdict {
  std::uint64_t magic = kRankMagic;
  Admitted admitted = Admitted::kWelcome;
  std::uint32_t reserved = 0;
  char proof[32] = {};  // zeros for a peer that did not prove itself
};
static_assert(sizeof(Verdict) == 48);

// Comes with the descriptor of the memory through which its sender writes.
struct WindowOffer {
  std::uint64_t magic = kRankMagic;
  std::uint64_t bytes = 0;  // of the window, without its head
};

std::string new_nonce();
Hello hello_of(const GangId& gang, int from, int to, int size, Channel channel);
// What a hello claims, for log lines: "rank 1 of 3 of policy, run 7, generation 2".
std::string words_of(const Hello& hello);
// The proof of the dialling side, or of the listening one. Error kInternal: not a key.
core::Result<std::string> dialler_proof(const std::string& key, const Challenge&, const Hello&);
core::Result<std::string> listener_proof(const std::string& key, const Challenge&, const Hello&);
// What the listening rank `rank` thinks of a hello; kTaken is not decided here.
core::Result<Admitted> judge(const std::string& key,
                             const GangId& gang,
                             int rank,
                             int size,
                             const Challenge& challenge,
                             const Hello& hello);
// "another generation of the gang".
std::string reason_of(Admitted admitted);

enum class Kind : std::uint16_t {
  kBroadcast = 1,
  kAllGather = 2,
  kAllToAll = 3,
  kSend = 4,
  kReceive = 5,
  kBarrier = 6,
};

// What a meeting of an operation is for. Where bytes go from device to device it has two: one
// before they are moved, and one when all are done.
enum class Way : std::uint16_t { kPipe = 0, kLink = 1, kLinkDone = 2 };

// Tells a peer what this rank is doing and how many bytes go between the two in this call.
struct MessageHead {
  std::uint64_t magic = kRankMagic;
  std::uint64_t call = 0;  // number of this call among those in which both take part, from 0
  Kind kind = Kind::kBarrier;
  Way way = Way::kPipe;
  std::uint32_t root = 0;                // of a broadcast
  std::uint64_t sends = 0, expects = 0;  // bytes to the peer and from it
};
static_assert(sizeof(MessageHead) == 40);

// "broadcast from rank 0, sending 8 bytes and expecting 0, in call 3".
std::string words_of(const MessageHead& head);
// Whether `theirs`, which rank `their_rank` sent, belongs to the same call as `mine`. Error
// kInvalidArgument names both ranks, what each is doing and the sizes; kData: not a head.
core::Result<void> check_same_call(int my_rank,
                                   const MessageHead& mine,
                                   int their_rank,
                                   const MessageHead& theirs);

// On the control connection. kWake: look at the shared memory again. kDone: the rank has left in
// order. kFailed: a Farewell and its text follow. kNoLink: the device link that is being made does
// not come up at this rank.
inline constexpr char kWake = 1, kDone = 2, kFailed = 3, kNoLink = 4;

struct Farewell {
  std::uint32_t code = 0;  // core::ErrorCode
  std::uint32_t text_bytes = 0;
};
inline constexpr std::uint32_t kFarewellText_bytes_max = 1024;

}  // namespace troupe::collective
