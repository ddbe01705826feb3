// Prompts, trajectories, states of groups.
#include "actors/protocol/codec_parts.hpp"

namespace troupe::actors {
namespace {

using Means = std::vector<std::pair<std::string, double>>;

void write_means(const Means& means, capnp::List<schema::RewardMean>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) {
    out[i].setName(means[i].first);
    out[i].setMean(means[i].second);
  }
}

Means read_means(capnp::List<schema::RewardMean>::Reader in) {
  Means means;
  for (const auto mean : in)
    means.emplace_back(text_of(mean.getName()), mean.getMean());
  return means;
}

}  // namespace

template <>
void Codec<IssueTickets>::write(const IssueTickets& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initIssueTickets();
  out.setUpdate(message.update);
  out.setGroups(message.groups);
  out.setSamples(message.samples);
  out.setEvaluation(message.evaluation);
  out.setVersionMin(message.version_min);
}
template <>
bool Codec<IssueTickets>::is(schema::Envelope::Reader envelope) {
  return envelope.isIssueTickets();
}
template <>
core::Result<IssueTickets> Codec<IssueTickets>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getIssueTickets();
  return IssueTickets{in.getUpdate(), in.getGroups(), in.getSamples(), in.getEvaluation(),
                      in.getVersionMin()};
}

template <>
void Codec<PromptTasks>::write(const PromptTasks& message, schema::Envelope::Builder envelope) {
  auto list = envelope.initPromptTasks().initTasks(count_of(message.tasks));
  for (unsigned i = 0; i < list.size(); ++i) {
    const PromptTask& task = message.tasks[i];
    write_ticket(task.ticket, list[i].initTicket());
    list[i].setPrompt(task.prompt);
    list[i].setTokens(bytes_of(task.tokens));
    list[i].setSamples(task.samples);
    list[i].setSeed(task.seed);
  }
}
template <>
bool Codec<PromptTasks>::is(schema::Envelope::Reader envelope) {
  return envelope.isPromptTasks();
}
template <>
core::Result<PromptTasks> Codec<PromptTasks>::read(schema::Envelope::Reader envelope) {
  PromptTasks message;
  for (const auto in : envelope.getPromptTasks().getTasks()) {
    PromptTask task;
    task.ticket = read_ticket(in.getTicket());
    task.prompt = in.getPrompt();
    TROUPE_TRY_ASSIGN(tokens, numbers_of<std::int32_t>(in.getTokens(), "tokens"));
    task.tokens = std::move(tokens);
    task.samples = in.getSamples();
    task.seed = in.getSeed();
    message.tasks.push_back(std::move(task));
  }
  return message;
}

template <>
void Codec<PutGroup>::write(const PutGroup& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initPutGroup();
  write_ticket(message.ticket, out.initTicket());
  out.setCut(message.cut);
  out.setDropped(message.dropped);
  auto list = out.initSamples(count_of(message.samples));
  for (unsigned i = 0; i < list.size(); ++i) {
    const DeliveredSample& sample = message.samples[i];
    auto record = list[i].initRecord();
    record.setTokens(bytes_of(sample.tokens));
    record.setBehaviour(bytes_of(sample.behaviour));
    record.setKeptMass(bytes_of(sample.kept_mass));
    record.setVersions(bytes_of(sample.versions));
    record.setFinish(sample.finish);
    list[i].setText(sample.text);
  }
}
template <>
bool Codec<PutGroup>::is(schema::Envelope::Reader envelope) {
  return envelope.isPutGroup();
}
template <>
core::Result<PutGroup> Codec<PutGroup>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getPutGroup();
  PutGroup message;
  message.ticket = read_ticket(in.getTicket());
  message.cut = in.getCut();
  message.dropped = in.getDropped();
  for (const auto sample : in.getSamples()) {
    const auto record = sample.getRecord();
    TROUPE_TRY_ASSIGN(tokens, numbers_of<std::int32_t>(record.getTokens(), "tokens"));
    TROUPE_TRY_ASSIGN(behaviour, numbers_of<float>(record.getBehaviour(), "behaviour"));
    TROUPE_TRY_ASSIGN(kept_mass, numbers_of<float>(record.getKeptMass(), "keptMass"));
    TROUPE_TRY_ASSIGN(versions, numbers_of<core::Version>(record.getVersions(), "versions"));
    message.samples.push_back({std::move(tokens), std::move(behaviour), std::move(kept_mass),
                               std::move(versions), text_of(sample.getText()),
                               text_of(record.getFinish())});
  }
  return message;
}

template <>
void Codec<AwaitGroups>::write(const AwaitGroups& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initAwaitGroups();
  out.setUpdate(message.update);
  auto starts = out.initStarts(count_of(message.starts));
  for (unsigned i = 0; i < starts.size(); ++i)
    starts.set(i, message.starts[i]);
}
template <>
bool Codec<AwaitGroups>::is(schema::Envelope::Reader envelope) {
  return envelope.isAwaitGroups();
}
template <>
core::Result<AwaitGroups> Codec<AwaitGroups>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getAwaitGroups();
  AwaitGroups message;
  message.update = in.getUpdate();
  for (const auto start : in.getStarts())
    message.starts.push_back(start);
  return message;
}

template <>
void Codec<GroupStatuses>::write(const GroupStatuses& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initGroupStatuses();
  auto staleness = out.initStaleness(count_of(message.staleness));
  for (unsigned i = 0; i < staleness.size(); ++i)
    staleness.set(i, message.staleness[i]);
  out.setCrossed(message.crossed);
  write_means(message.rewards, out.initRewards(count_of(message.rewards)));
  write_means(message.extras, out.initExtras(count_of(message.extras)));
  auto list = out.initGroups(count_of(message.groups));
  for (unsigned i = 0; i < list.size(); ++i) {
    const GroupStatus& group = message.groups[i];
    write_ticket(group.ticket, list[i].initTicket());
    list[i].setReady(group.ready);
    list[i].setCause(group.cause);
    list[i].setSamples(group.samples);
    list[i].setTokens(group.tokens);
    list[i].setMeanScore(group.mean_score);
    list[i].setState(group.state);
    list[i].setFiltered(group.filtered);
    list[i].setMissing(group.missing);
  }
}
template <>
bool Codec<GroupStatuses>::is(schema::Envelope::Reader envelope) {
  return envelope.isGroupStatuses();
}
template <>
core::Result<GroupStatuses> Codec<GroupStatuses>::read(schema::Envelope::Reader envelope) {
  const auto statuses = envelope.getGroupStatuses();
  GroupStatuses message;
  for (const auto in : statuses.getGroups()) {
    message.groups.push_back({read_ticket(in.getTicket()), in.getReady(), text_of(in.getState()),
                              text_of(in.getCause()), in.getSamples(), in.getTokens(),
                              in.getMeanScore(), in.getFiltered(), in.getMissing()});
  }
  for (const auto tokens : statuses.getStaleness())
    message.staleness.push_back(tokens);
  message.crossed = statuses.getCrossed();
  message.rewards = read_means(statuses.getRewards());
  message.extras = read_means(statuses.getExtras());
  return message;
}

template <>
void Codec<CommitUpdate>::write(const CommitUpdate& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initCommitUpdate();
  out.setUpdate(message.update);
  out.setAfterStep(message.after_step);
}
template <>
bool Codec<CommitUpdate>::is(schema::Envelope::Reader envelope) {
  return envelope.isCommitUpdate();
}
template <>
core::Result<CommitUpdate> Codec<CommitUpdate>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getCommitUpdate();
  return CommitUpdate{in.getUpdate(), in.getAfterStep()};
}

}  // namespace troupe::actors
