@0xd2f2e4a4f2d0a8c1;
# Messages between nodes and their company: joining, liveness, starting and stopping roles, status.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

# Travels next to an actor's address, from one process to another: "this address is the role `name`".
struct Hello {
  name @0 :Text;     # "node/gpu1", "generator/0"
  runId @1 :UInt64;  # 0 for nodes and their company
  epoch @2 :UInt64;  # starts of that role
  pass @3 :Text;     # the pass of a node; empty for roles of a node that has joined
  arithmetic @4 :Text;  # the class that the role computes in: "f32/v1/..."; empty: no matter
}

# The first request of a node to company/0.
struct Join {
  name @0 :Text;            # of the node, unique in the company: "node/gpu1"
  host @1 :Text;            # as the host calls itself
  hostId @2 :Text;          # equal for processes that share memory: boot id and namespace
  pid @3 :UInt32;
  cores @4 :UInt32;
  arithmetic @5 :Text;      # class of the processor: "f32/v1/..."
  build @6 :Text;           # version of the program
  roles @7 :List(Text);     # kinds it offers to run: "generator", "reward"
  hosted @8 :List(HostedRole);  # started by an earlier head
  config @9 :Text;          # the configuration that these were started with
  runId @10 :UInt64;        # the run that it belongs to; 0: whichever it meets
  run @11 :Text;            # the folder of that run, for people
}

# A role that runs on a node whose head is gone.
struct HostedRole {
  kind @0 :Text;
  name @1 :Text;
  runId @2 :UInt64;
  epoch @3 :UInt64;
}

struct Joined {
  runId @0 :UInt64;
  node @1 :Text;
  kept @2 :List(Text);   # of `hosted`; the node stops the others
  headWaitMs @3 :UInt32; # how long the node waits for a new head when this one is gone
  run @4 :Text;          # the run's folder, as its head calls it
}

# A node's heartbeat, sent every kBeatEvery (actors/limits.def).
struct Beat {
  count @0 :UInt64;
  node @1 :Text;
  memory @2 :UInt64;               # bytes that its process has in main memory; 0: not known
  reports @3 :List(RoleReport);    # of its roles, without spans
}

# Lines that a node has printed, for the company's log of it. A sender repeats them until they are
# acknowledged.
struct PutLog {
  node @0 :Text;
  first @1 :UInt64;     # number of the first line; a node counts its lines from 0
  lines @2 :List(Text);
  dropped @3 :UInt64;   # lines before the first that were not kept, since the last message
}

# Takes a node out of the run: it gets no new work, and is dismissed when it has none.
struct DrainNode {
  node @0 :Text;    # "gpu1" or "node/gpu1"
  waitMs @1 :UInt32; # how long its generators may finish what they sample; then it is moved
}

struct Setting {
  name @0 :Text;
  value @1 :Text;
}

struct Spawn {
  kind @0 :Text;      # "policy", "critic", "generator", "reference", "reward"
  name @1 :Text;      # "generator/0"
  runId @2 :UInt64;
  epoch @3 :UInt64;
  threads @4 :UInt32; # compute threads it may use
  config @5 :Text;    # resolved configuration of the run, YAML
  settings @6 :List(Setting);
  rank @7 :UInt32;    # of the role in its gang
  ranks @8 :UInt32;   # of that gang; 0 or 1: the role has none
}

# Where a rank of a gang listens while its gang forms.
struct RankAddress {
  hostId @0 :Text;   # ranks with equal ids share memory
  socket @1 :Text;   # path of its Unix socket; empty: none
  tcpHost @2 :Text;  # an address, or the path of a socket that leads to the rank
  tcpPort @3 :UInt32; # 0: none
}

# A rank asks the company to be told of the other ranks. Answered once all have asked.
struct MeetGang {
  role @0 :Text;        # "policy/1"
  epoch @1 :UInt64;     # of this start of the gang
  arithmetic @2 :Text;  # the class that the rank computes in
  address @3 :RankAddress;
}

struct GangMet {
  key @0 :Text;                    # 64 hexadecimal digits, of this start of the gang alone
  addresses @1 :List(RankAddress); # by rank
}

struct StopRole {
  name @0 :Text;
  epoch @1 :UInt64;  # stops this start or an earlier one, not a later one; 0: any
}

# The company asks a role's host for a report; the host answers whatever the role is doing.
struct QueryRole {
  spansAfter @0 :UInt64;  # only spans from this number on
}

struct Amount {
  name @0 :Text;
  value @1 :Float64;
}

struct Span {
  state @0 :Text;   # "busy", "idle", "paused"
  cause @1 :Text;   # "step", "no tickets"
  begin @2 :UInt64; # ns of the host's monotonic clock
  end @3 :UInt64;
}

struct RoleReport {
  name @0 :Text;
  state @1 :Text;
  actor @2 :UInt64;            # actor id in its process, 0 without one
  epoch @3 :UInt64;
  inbox @4 :UInt32;            # requests that wait or are being served
  pending @5 :UInt32;          # calls that wait for an answer
  framesIn @6 :UInt64;
  framesOut @7 :UInt64;
  busyS @8 :Float64;
  pausedS @9 :Float64;
  idleS @10 :List(Amount);     # by cause
  wallS @11 :Float64;          # since the role started: busy + paused + idle
  amounts @12 :List(Amount);   # "version", "tokens", ...
  spans @13 :List(Span);
  nextSpan @14 :UInt64;        # `spansAfter` of the next query
  waitsFor @15 :Text;          # peer whose answer has been outstanding longest, "" if none
  ageS @16 :Float64;           # seconds since the report was made, when it was sent
}

struct QueryStatus {}

struct Status {
  json @0 :Text;
}
