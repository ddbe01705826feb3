#include "runtime/collective/rank_protocol.hpp"

#include "runtime/core/secret.hpp"
#include "runtime/net/keyed_proof.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace troupe::collective {
namespace {

using std::to_string;

core::Result<std::string> rank_proof(const std::string& key,
                                     const char* side,
                                     const Challenge& challenge,
                                     const Hello& hello) {
  std::string text = std::string("troupe rank v1 ") + side;
  text += '\0';
  text.append(challenge.nonce, kNonce_chars);
  text.append(reinterpret_cast<const char*>(&hello), offsetof(Hello, proof));
  return net::keyed_proof(key, text);
}

std::string_view role_in(const Hello& hello) {
  return {hello.role, ::strnlen(hello.role, sizeof hello.role)};
}

std::string name_of(const MessageHead& head) {
  switch (head.kind) {
    case Kind::kBroadcast:
      return "broadcast from rank " + to_string(head.root);
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kAllToAll:
      return "all_to_all";
    case Kind::kSend:
      return "send";
    case Kind::kReceive:
      return "recv";
    case Kind::kBarrier:
      return "barrier";
  }
  return "an unknown operation";
}

const char* way_of(const MessageHead& head) {
  if (head.way == Way::kLink) return " from device to device";
  return head.way == Way::kLinkDone ? " from device to device (at its end)" : "";
}

Kind counterpart(Kind kind) {
  if (kind == Kind::kSend) return Kind::kReceive;
  return kind == Kind::kReceive ? Kind::kSend : kind;
}

}  // namespace

std::string new_nonce() {
  return core::random_hex(kNonce_chars / 2);
}

Hello hello_of(const GangId& gang, int from, int to, int size, Channel channel) {
  Hello hello;
  hello.run = gang.run.value;
  hello.generation = gang.generation;
  gang.role.copy(hello.role, sizeof hello.role - 1);
  hello.from = static_cast<std::uint32_t>(from);
  hello.to = static_cast<std::uint32_t>(to);
  hello.size = static_cast<std::uint32_t>(size);
  hello.channel = channel;
  new_nonce().copy(hello.nonce, kNonce_chars);
  return hello;
}

std::string words_of(const Hello& hello) {
  std::string role(role_in(hello));
  std::replace_if(
      role.begin(), role.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "rank " + to_string(hello.from) + " of " + to_string(hello.size) + " of " + role +
         ", run " + to_string(hello.run) + ", generation " + to_string(hello.generation);
}

core::Result<std::string> dialler_proof(const std::string& key,
                                        const Challenge& challenge,
                                        const Hello& hello) {
  return rank_proof(key, "dialler", challenge, hello);
}

core::Result<std::string> listener_proof(const std::string& key,
                                         const Challenge& challenge,
                                         const Hello& hello) {
  return rank_proof(key, "listener", challenge, hello);
}

core::Result<Admitted> judge(const std::string& key,
                             const GangId& gang,
                             int rank,
                             int size,
                             const Challenge& challenge,
                             const Hello& hello) {
  TROUPE_TRY_ASSIGN(proof, dialler_proof(key, challenge, hello));
  if (!core::same_secret({hello.proof, sizeof hello.proof}, proof)) return Admitted::kNotProven;
  if (hello.run != gang.run.value) return Admitted::kOtherRun;
  if (role_in(hello) != gang.role) return Admitted::kOtherRole;
  if (hello.generation != gang.generation) return Admitted::kOtherGeneration;
  if (hello.size != static_cast<std::uint32_t>(size)) return Admitted::kOtherSize;
  const bool dials = hello.from > static_cast<std::uint32_t>(rank) && hello.from < hello.size;
  const bool known = hello.channel == Channel::kControl || hello.channel == Channel::kBytes;
  if (!dials || !known || hello.to != static_cast<std::uint32_t>(rank)) return Admitted::kWrongRank;
  return Admitted::kWelcome;
}

std::string reason_of(Admitted admitted) {
  switch (admitted) {
    case Admitted::kWelcome:
      return "welcome";
    case Admitted::kNotProven:
      return "no proof of the gang's key";
    case Admitted::kOtherRun:
      return "another run";
    case Admitted::kOtherRole:
      return "another role";
    case Admitted::kOtherGeneration:
      return "another generation of the gang";
    case Admitted::kOtherSize:
      return "another number of ranks";
    case Admitted::kWrongRank:
      return "not a rank that connects here";
    case Admitted::kTaken:
      return "this rank is here already";
  }
  return "an unknown reason";
}

std::string words_of(const MessageHead& head) {
  return name_of(head) + way_of(head) + ", sending " + to_string(head.sends) +
         " bytes and expecting " + to_string(head.expects) + ", in call " + to_string(head.call);
}

core::Result<void> check_same_call(int my_rank,
                                   const MessageHead& mine,
                                   int their_rank,
                                   const MessageHead& theirs) {
  if (theirs.magic != kRankMagic) {
    return fail(ErrorCode::kData, "rank " + to_string(my_rank) + " got bytes from rank " +
                                      to_string(their_rank) + " that do not begin a message");
  }
  if (theirs.call == mine.call && theirs.kind == counterpart(mine.kind) && theirs.way == mine.way &&
      theirs.root == mine.root && theirs.sends == mine.expects && theirs.expects == mine.sends)
    return {};
  return fail(ErrorCode::kInvalidArgument,
              "ranks do not agree: rank " + to_string(my_rank) + " is in " + words_of(mine) +
                  " with rank " + to_string(their_rank) + ", which is in " + words_of(theirs));
}

}  // namespace troupe::collective
