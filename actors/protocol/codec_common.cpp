// Tickets, acknowledgements and folders.
#include "actors/protocol/codec_parts.hpp"

namespace troupe::actors {

void write_ticket(const core::Ticket& ticket, schema::Ticket::Builder out) {
  out.setUpdate(ticket.update);
  out.setSlot(ticket.slot);
  out.setAttempt(ticket.attempt);
}

core::Ticket read_ticket(schema::Ticket::Reader in) {
  return {in.getUpdate(), in.getSlot(), in.getAttempt()};
}

void write_tickets(const std::vector<core::Ticket>& tickets,
                   capnp::List<schema::Ticket>::Builder out) {
  for (unsigned i = 0; i < out.size(); ++i) write_ticket(tickets[i], out[i]);
}

std::vector<core::Ticket> read_tickets(capnp::List<schema::Ticket>::Reader in) {
  std::vector<core::Ticket> tickets;
  tickets.reserve(in.size());
  for (const auto ticket : in) tickets.push_back(read_ticket(ticket));
  return tickets;
}

template <>
void Codec<Ack>::write(const Ack&, schema::Envelope::Builder envelope) {
  envelope.initAck();
}
template <>
bool Codec<Ack>::is(schema::Envelope::Reader envelope) {
  return envelope.isAck();
}
template <>
core::Result<Ack> Codec<Ack>::read(schema::Envelope::Reader) {
  return Ack{};
}

#define TROUPE_TICKETS_CODEC(Message, Arm)                                                       \
  template <>                                                                                    \
  void Codec<Message>::write(const Message& message, schema::Envelope::Builder envelope) {       \
    write_tickets(message.tickets, envelope.init##Arm().initTickets(count_of(message.tickets))); \
  }                                                                                              \
  template <>                                                                                    \
  bool Codec<Message>::is(schema::Envelope::Reader envelope) {                                   \
    return envelope.is##Arm();                                                                   \
  }                                                                                              \
  template <>                                                                                    \
  core::Result<Message> Codec<Message>::read(schema::Envelope::Reader envelope) {                \
    return Message{read_tickets(envelope.get##Arm().getTickets())};                              \
  }

TROUPE_TICKETS_CODEC(Tickets, Tickets)
TROUPE_TICKETS_CODEC(ReissueTickets, ReissueTickets)
TROUPE_TICKETS_CODEC(FetchPrompts, FetchPrompts)
TROUPE_TICKETS_CODEC(CutGroups, CutGroups)
#undef TROUPE_TICKETS_CODEC

#define TROUPE_FOLDER_CODEC(Message, Arm)                                                  \
  template <>                                                                              \
  void Codec<Message>::write(const Message& message, schema::Envelope::Builder envelope) { \
    envelope.init##Arm().setPath(message.folder);                                          \
  }                                                                                        \
  template <>                                                                              \
  bool Codec<Message>::is(schema::Envelope::Reader envelope) {                             \
    return envelope.is##Arm();                                                             \
  }                                                                                        \
  template <>                                                                              \
  core::Result<Message> Codec<Message>::read(schema::Envelope::Reader envelope) {          \
    return Message{text_of(envelope.get##Arm().getPath())};                                \
  }

TROUPE_FOLDER_CODEC(SaveState, SaveState)
TROUPE_FOLDER_CODEC(LoadState, LoadState)
TROUPE_FOLDER_CODEC(SaveModel, SaveModel)
#undef TROUPE_FOLDER_CODEC

}  // namespace troupe::actors
