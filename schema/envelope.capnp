@0xdbe9ba1e674fd623;
# The only message type on the wire. The header has all that a reader must know before it looks at
# the body; an arm that a reader does not know is answered with an `unsupported` error.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");
using Common = import "/schema/common.capnp";
using Data = import "/schema/data.capnp";
using Generator = import "/schema/generator.capnp";
using Reward = import "/schema/reward.capnp";
using Reference = import "/schema/reference.capnp";
using Policy = import "/schema/policy.capnp";
using Critic = import "/schema/critic.capnp";
using Rows = import "/schema/rows.capnp";
using Node = import "/schema/node.capnp";
using Calls = import "/schema/calls.capnp";

struct Header {
  protocol @0 :UInt32;   # version of the protocol, now 1
  runId @1 :UInt64;
  epoch @2 :UInt64;      # starts of the asker in this run; answers to an earlier start are dropped
  requestId @3 :UInt64;
  budgetMs @4 :UInt32;   # ms left until the caller's deadline when the frame was made
  sender @5 :Text;       # "controller/0"
  reply @6 :Bool;        # set in answers, which repeat the request's requestId
}

enum ErrorKind {
  invalidArgument @0;
  config @1;
  resources @2;
  data @3;
  peerLost @4;
  numeric @5;
  interrupted @6;
  deadline @7;
  closed @8;
  overloaded @9;
  unsupported @10;
  notFound @11;
  internal @12;
  noRoom @13;
}

struct Failure {
  kind @0 :ErrorKind;
  message @1 :Text;
  adviceAt @2 :UInt32;  # where in the message the advice begins; 0: it has none
}

# Asks whether the role is alive. Its host answers, whatever the role is doing.
struct Ping {}

struct Pong {
  role @0 :Text;
  state @1 :Text;
}

# Asks the host to stop the role. The host acknowledges first.
struct Shutdown {}

# Marks an arm that roles never see: only hosts and transports (runtime/wire) write and read it.
annotation hostOnly @0xb1f7a0f3c6f5d2a9 (field) :Void;

struct Envelope {
  header @0 :Header;
  union {
    empty @1 :Void;  # a frame whose body was never set; it is refused
    failure @2 :Failure $hostOnly;
    ack @3 :Common.Ack;
    ping @4 :Ping $hostOnly;
    pong @5 :Pong $hostOnly;
    shutdown @6 :Shutdown $hostOnly;
    issueTickets @7 :Data.IssueTickets;
    reissueTickets @8 :Common.Tickets;
    tickets @9 :Data.IssuedTickets;
    fetchPrompts @10 :Common.Tickets;
    promptTasks @11 :Data.PromptTasks;
    putGroup @12 :Data.PutGroup;
    awaitGroups @13 :Data.AwaitGroups;
    groupStatuses @14 :Data.GroupStatuses;
    fetchExperience @15 :Data.FetchExperience;
    experiencePage @16 :Data.ExperiencePage;
    commitUpdate @17 :Data.CommitUpdate;
    generate @18 :Generator.Generate;
    generated @19 :Generator.Generated;
    updateWeights @20 :Generator.UpdateWeights;
    score @21 :Reward.Score;
    scores @22 :Reward.Scores;
    scoreLogprobs @23 :Reference.ScoreLogprobs;
    logprobs @24 :Reference.Logprobs;
    trainUpdate @25 :Policy.TrainUpdate;
    trained @26 :Policy.Trained;
    publishWeights @27 :Policy.PublishWeights;
    published @28 :Policy.Published;
    saveState @29 :Common.Folder;
    loadState @30 :Common.LoadState;
    saveModel @31 :Common.Folder;
    hello @32 :Node.Hello $hostOnly;
    join @33 :Node.Join;
    joined @34 :Node.Joined;
    beat @35 :Node.Beat;
    spawn @36 :Node.Spawn;
    stopRole @37 :Node.StopRole;
    queryRole @38 :Node.QueryRole $hostOnly;
    roleReport @39 :Node.RoleReport $hostOnly;
    queryStatus @40 :Node.QueryStatus;
    status @41 :Node.Status;
    cutGroups @42 :Common.Tickets;
    setRewards @43 :Reward.SetRewards;
    drainReward @44 :Reward.RewardName;
    attachReward @45 :Reward.AttachReward;
    reweightReward @46 :Reward.ReweightReward;
    detachReward @47 :Reward.RewardName;
    rewardsChanged @48 :Reward.RewardsChanged;
    scoreValues @49 :Critic.ScoreValues;
    criticValues @50 :Critic.CriticValues;
    putReturns @51 :Critic.PutReturns;
    trainCritic @52 :Critic.TrainCritic;
    awaitPublished @53 :Policy.AwaitPublished;
    part @54 :Common.Part $hostOnly;
    whole @55 :Common.Whole $hostOnly;
    setAside @56 :Data.SetAside;
    loaded @57 :Common.Loaded;
    drainNode @58 :Node.DrainNode;
    drainGenerator @59 :Generator.DrainGenerator;
    putLog @60 :Node.PutLog;
    meetGang @61 :Node.MeetGang;
    gangMet @62 :Node.GangMet;
    fetchRows @63 :Rows.FetchRows;
    rowsPage @64 :Rows.RowsPage;
    evaluateRows @65 :Rows.EvaluateRows;
    fetchEpisodes @66 :Calls.FetchEpisodes;
    episodeTasks @67 :Calls.EpisodeTasks;
    complete @68 :Calls.Complete;
    completed @69 :Calls.Completed;
    introduceReward @70 :Reward.IntroduceReward;
    rewardReads @71 :Reward.RewardReads;
  }
}
