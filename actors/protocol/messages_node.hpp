// The messages between nodes and their company, as plain values (messages.hpp has those of roles).
// A node has the address "node/NAME", its company "company/0", both with run id 0.
#pragma once

#include "actors/protocol/messages.hpp"
#include "runtime/collective/rendezvous.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

// The kind of an environment that a node brings of its own (`troupe attach environment`): node/NAME
// runs environment/NAME.
inline constexpr const char* kAttachedEnvironment = "attached-environment";

// ---- to company/0

struct Joined {
  std::uint64_t run_id = 0;
  std::string node;
  std::vector<std::string> kept;   // of the hosted roles; the node stops the others
  std::uint32_t head_wait_ms = 0;  // how long the node waits for a new head when this one is gone
  std::string run{};               // the run's folder, as its head calls it
};

// A role that an earlier head started, on a node that has waited for the next.
struct HostedRole {
  std::string kind, name;
  std::uint64_t run_id = 0;
  std::uint64_t epoch = 0;
};

// The first request of a node. Errors: kNotFound (it belongs to another run), kInvalidArgument
// (name taken), kUnsupported (another class of arithmetic or another program version, naming both),
// kOverloaded (kNodes_max nodes).
struct Join {
  using Reply = Joined;
  std::string name;     // "node/gpu1", unique in the company
  std::string host;     // as the host calls itself
  std::string host_id;  // equal for processes that share memory
  std::uint32_t pid = 0;
  std::uint32_t cores = 0;
  std::string arithmetic;            // class of the processor: "f32/v1/..."
  std::string build;                 // version of the program
  std::vector<std::string> roles;    // kinds it offers to run
  std::vector<HostedRole> hosted{};  // started by an earlier head
  std::string config{};              // the configuration that `kept` started with
  std::uint64_t run_id = 0;          // the run that it belongs to; 0: whichever it meets
  std::string run{};                 // the folder of that run, for display
};

// A heartbeat, every kBeatEvery, with the node's figures. Error kPeerLost: the company has given
// the node up, so the node ends or joins again.
struct Beat {
  using Reply = Ack;
  std::string node;
  std::uint64_t count = 0;
  std::uint64_t memory = 0;                 // bytes of its process in main memory; 0: not known
  std::vector<wire::RoleReport> reports{};  // of its roles, without spans
  core::Result<void> check() const;         // kData: more roles than a node can have
};

// Lines that the node has printed. `first`: number of the first line; `dropped`: how many before it
// were not kept since the last message. Error kData: too many or too long for one message.
struct PutLog {
  using Reply = Ack;
  std::string node;
  std::uint64_t first = 0;
  std::vector<std::string> lines;
  std::uint64_t dropped = 0;
  core::Result<void> check() const;
};

// Takes a node out of the run and dismisses it. Its generators may finish what they sample for
// `wait_ms`; then that is moved. Answers once the node has left. Errors: kNotFound naming the nodes
// that there are; kInvalidArgument saying why the run needs the node, and what to do instead.
struct DrainNode {
  using Reply = Ack;
  std::string node;  // "gpu1" or "node/gpu1"
  std::uint32_t wait_ms = 0;
};

// Asks for weights newer than `held`. Answers as soon as there are any; after kNewsWait with the
// newest there are. Error kNotFound: none were published so far.
struct AwaitPublished {
  using Reply = Published;
  std::optional<core::Version> held;
};

// The state of the company and its run, as one JSON object (docs/protocol.md).
struct Status {
  std::string json;
};
struct QueryStatus {
  using Reply = Status;
};

// What a rank of a gang must know to connect with the others.
struct GangMet {
  std::string key;  // a secret of this start of the gang
  std::vector<collective::RankAddress> addresses;
};
// A rank says where it listens. Answers once all ranks of this start of its gang have asked.
// Errors: kPeerLost (that start is over), kUnsupported (the ranks compute in different classes),
// kInvalidArgument (no such rank).
struct MeetGang {
  using Reply = GangMet;
  std::string role;  // "policy/1"
  std::uint64_t epoch = 0;
  std::string arithmetic;
  collective::RankAddress address;
};

// ---- to the controller

// The generator gets no more tickets. Answers once it samples none, or after `wait_ms`.
struct DrainGenerator {
  using Reply = Ack;
  std::string name;
  std::uint32_t wait_ms = 0;
};

// ---- to a node

// Starts a role. Answers when the role serves requests.
struct Spawn {
  using Reply = Ack;
  std::string kind;  // "policy", "critic", "generator", "reference", "teacher", "reward"
  std::string name;  // "generator/0"
  std::uint64_t run_id = 0;
  std::uint64_t epoch = 0;
  std::uint32_t threads = 0;  // compute threads it may use
  std::string config;         // the run's resolved configuration, YAML
  std::vector<std::pair<std::string, std::string>> settings;  // "updates", hashes of files
  std::uint32_t rank = 0, ranks = 1;  // its place in a gang; with one rank, no gang
};

// Stops a role. `epoch`: the newest start to stop (a later one keeps running); 0: any.
struct StopRole {
  using Reply = Ack;
  std::string name;
  std::uint64_t epoch = 0;
};

}  // namespace troupe::actors
