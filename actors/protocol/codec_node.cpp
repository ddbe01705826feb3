// Nodes and their company.
#include "actors/protocol/codec_parts.hpp"

namespace troupe::actors {

template <>
void Codec<Join>::write(const Join& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initJoin();
  out.setName(message.name);
  out.setHost(message.host);
  out.setHostId(message.host_id);
  out.setPid(message.pid);
  out.setCores(message.cores);
  out.setArithmetic(message.arithmetic);
  out.setBuild(message.build);
  auto roles = out.initRoles(count_of(message.roles));
  for (unsigned i = 0; i < roles.size(); ++i)
    roles.set(i, message.roles[i]);
}
template <>
bool Codec<Join>::is(schema::Envelope::Reader envelope) {
  return envelope.isJoin();
}
template <>
core::Result<Join> Codec<Join>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getJoin();
  Join message;
  message.name = text_of(in.getName());
  message.host = text_of(in.getHost());
  message.host_id = text_of(in.getHostId());
  message.pid = in.getPid();
  message.cores = in.getCores();
  message.arithmetic = text_of(in.getArithmetic());
  message.build = text_of(in.getBuild());
  for (const auto role : in.getRoles())
    message.roles.push_back(text_of(role));
  return message;
}

template <>
void Codec<Joined>::write(const Joined& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initJoined();
  out.setRunId(message.run_id);
  out.setNode(message.node);
}
template <>
bool Codec<Joined>::is(schema::Envelope::Reader envelope) {
  return envelope.isJoined();
}
template <>
core::Result<Joined> Codec<Joined>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getJoined();
  return Joined{in.getRunId(), text_of(in.getNode())};
}

template <>
void Codec<Beat>::write(const Beat& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initBeat();
  out.setNode(message.node);
  out.setCount(message.count);
}
template <>
bool Codec<Beat>::is(schema::Envelope::Reader envelope) {
  return envelope.isBeat();
}
template <>
core::Result<Beat> Codec<Beat>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getBeat();
  return Beat{text_of(in.getNode()), in.getCount()};
}

template <>
void Codec<QueryStatus>::write(const QueryStatus&, schema::Envelope::Builder envelope) {
  envelope.initQueryStatus();
}
template <>
bool Codec<QueryStatus>::is(schema::Envelope::Reader envelope) {
  return envelope.isQueryStatus();
}
template <>
core::Result<QueryStatus> Codec<QueryStatus>::read(schema::Envelope::Reader) {
  return QueryStatus{};
}

template <>
void Codec<Status>::write(const Status& message, schema::Envelope::Builder envelope) {
  envelope.initStatus().setJson(message.json);
}
template <>
bool Codec<Status>::is(schema::Envelope::Reader envelope) {
  return envelope.isStatus();
}
template <>
core::Result<Status> Codec<Status>::read(schema::Envelope::Reader envelope) {
  return Status{text_of(envelope.getStatus().getJson())};
}

template <>
void Codec<Spawn>::write(const Spawn& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initSpawn();
  out.setKind(message.kind);
  out.setName(message.name);
  out.setRunId(message.run_id);
  out.setEpoch(message.epoch);
  out.setThreads(message.threads);
  out.setConfig(message.config);
  auto settings = out.initSettings(count_of(message.settings));
  for (unsigned i = 0; i < settings.size(); ++i) {
    settings[i].setName(message.settings[i].first);
    settings[i].setValue(message.settings[i].second);
  }
}
template <>
bool Codec<Spawn>::is(schema::Envelope::Reader envelope) {
  return envelope.isSpawn();
}
template <>
core::Result<Spawn> Codec<Spawn>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getSpawn();
  Spawn message;
  message.kind = text_of(in.getKind());
  message.name = text_of(in.getName());
  message.run_id = in.getRunId();
  message.epoch = in.getEpoch();
  message.threads = in.getThreads();
  message.config = text_of(in.getConfig());
  for (const auto setting : in.getSettings()) {
    message.settings.emplace_back(text_of(setting.getName()), text_of(setting.getValue()));
  }
  return message;
}

template <>
void Codec<StopRole>::write(const StopRole& message, schema::Envelope::Builder envelope) {
  envelope.initStopRole().setName(message.name);
}
template <>
bool Codec<StopRole>::is(schema::Envelope::Reader envelope) {
  return envelope.isStopRole();
}
template <>
core::Result<StopRole> Codec<StopRole>::read(schema::Envelope::Reader envelope) {
  return StopRole{text_of(envelope.getStopRole().getName())};
}

}  // namespace troupe::actors
