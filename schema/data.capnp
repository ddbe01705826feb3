@0x95e2c0c2a28d6069;
# Messages to and from the data role: tickets, prompts, trajectories, experience.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");
using Common = import "/schema/common.capnp";

struct IssueTickets {
  update @0 :UInt64;  # or the number of an evaluation
  groups @1 :UInt32;
  samples @2 :Int32;      # of each group; 0: the run's group size
  versionMin @3 :UInt64;  # a delivered token from older weights is an error
}

# Answers IssueTickets and ReissueTickets. Ordinal 0 is that of Common.Tickets, which it once was.
struct IssuedTickets {
  tickets @0 :List(Common.Ticket);
  rows @1 :List(UInt64);  # by ticket: the row of its prompt in the dataset
  prompts @2 :UInt64;     # rows of that dataset
}

struct PromptTask {
  ticket @0 :Common.Ticket;
  prompt @1 :UInt64;  # index of the row in its dataset
  tokens @2 :Data;    # int32
  samples @3 :Int32;
  seed @4 :UInt64;
}

struct PromptTasks {
  tasks @0 :List(PromptTask);
}

struct PutGroup {
  ticket @0 :Common.Ticket;
  samples @1 :List(Common.Trajectory);
  cut @2 :Bool;  # a straggler with fewer samples than asked for
  tooLong @3 :UInt32;  # above 0: samples of a group over the size limit, sent without them
  prompt @4 :Data;  # int32, what all rows of the group begin with; empty: the dataset's prompt
  modules @5 :Text;  # of an environment, as in Scores
}

# The ticket failed at every generator that tried it: its group counts as failed.
struct SetAside {
  ticket @0 :Common.Ticket;
  cause @1 :Text;
}

# Answered when all groups of the update are ready, or as soon as one has failed.
struct AwaitGroups {
  update @0 :UInt64;
  starts @1 :List(UInt64);  # version at the start of the newest updates, `update`'s last
}

enum GroupState {
  issued @0;
  generated @1;
  ready @2;
  failed @3;
}

struct GroupStatus {
  ticket @0 :Common.Ticket;
  state @1 :GroupState;
  cause @2 :Text;
  samples @3 :UInt32;
  tokens @4 :UInt64;
  meanScore @5 :Float64;  # 0 unless the group is ready
  filtered @6 :Bool;  # failed because its scores teach nothing: all are equal, or their mean is out of range
  missing @7 :UInt32;  # samples of this slot without a score, also of earlier attempts
  row @8 :UInt64;        # of its prompt in the dataset
  truncated @9 :UInt32;  # of its samples, those that ended at the limit of their length
}

struct GroupStatuses {
  groups @0 :List(GroupStatus);
  staleness @1 :List(UInt64);  # tokens of the ready groups by age in updates
  crossed @2 :UInt64;          # samples whose tokens come from more than one version
  rewards @3 :List(RewardMean);
  extras @4 :List(RewardMean);  # of the numbers that rewards report next to their scores
  lengths @5 :List(RewardMean); # correlations of score and length over the ready groups' samples
  prompts @6 :UInt64;           # rows of the dataset that the prompts are from
}

# Mean of one reward of the set, or of a number that it reports, over the update's samples.
struct RewardMean {
  name @0 :Text;
  value @1 :Float64;
}

struct FetchExperience {
  update @0 :UInt64;
  slots @1 :List(UInt32);
}

struct ExperiencePage {
  groups @0 :List(Common.Group);  # of the first slots asked for: as many as fit, at least one
}

struct CommitUpdate {
  update @0 :UInt64;
  afterStep @1 :UInt64;  # updates done, with this one; names the rollout files
}
