// An inventory as one JSON text and back. Fields that hold their default are left out.
#include <string>

#include "gpu/inventory.h"
#include "gpu/json.h"

namespace sextant::gpu {
namespace {

constexpr int kFormat = 1;

void WriteMig(JsonWriter& w, const Card& card) {
  w.Key("mig").BeginArray();
  for (const MigDevice& d : card.mig) {
    w.BeginObject();
    w.Key("uuid").Str(d.uuid).Key("profile").Str(d.profile);
    w.Key("gi").Int(d.gpu_instance).Key("ci").Int(d.compute_instance).Key("start").Int(d.start);
    w.EndObject();
  }
  w.EndArray();
}

void WriteProcesses(JsonWriter& w, const Card& card) {
  w.Key("processes").BeginArray();
  for (const Process& p : card.processes) {
    w.BeginObject();
    w.Key("pid").Int(p.pid).Key("name").Str(p.name).Key("memory_mib").Int(p.memory_mib);
    w.Key("gi").Int(p.gpu_instance).Key("ci").Int(p.compute_instance);
    w.EndObject();
  }
  w.EndArray();
}

void WriteCard(JsonWriter& w, const Card& card) {
  w.BeginObject();
  w.Key("minor").Int(card.minor).Key("uuid").Str(card.uuid).Key("bus_id").Str(card.bus_id);
  w.Key("serial").Str(card.serial).Key("model").Str(card.model->id);
  if (card.product != card.model->product) w.Key("product").Str(card.product);
  if (card.memory_mib != card.model->memory_mib) w.Key("memory_mib").Int(card.memory_mib);
  w.Key("numa").Int(card.numa_node).Key("cpus").Str(card.cpus).Key("slot").Int(card.slot);
  if (card.allocation == Allocation::kDra) w.Key("dra").Bool(true);
  if (card.mig_enabled) w.Key("mig_enabled").Bool(true);
  if (!card.mig.empty()) WriteMig(w, card);
  if (!card.healthy) w.Key("unhealthy").Str(card.unhealthy_reason);
  if (card.last_xid != 0) w.Key("xid").Int(card.last_xid);
  if (card.lost) w.Key("lost").Bool(true);
  if (!card.ecc_enabled) w.Key("ecc").Bool(false);
  if (card.ecc_corrected != 0) w.Key("ecc_corrected").Int(card.ecc_corrected);
  if (card.ecc_uncorrected != 0) w.Key("ecc_uncorrected").Int(card.ecc_uncorrected);
  if (card.gpu_util != 0) w.Key("gpu_util").Int(card.gpu_util);
  if (card.memory_util != 0) w.Key("memory_util").Int(card.memory_util);
  if (card.memory_used_mib != 0) w.Key("memory_used_mib").Int(card.memory_used_mib);
  if (!card.processes.empty()) WriteProcesses(w, card);
  w.EndObject();
}

int Int(const Json& j, int otherwise = 0) { return static_cast<int>(j.Int(otherwise)); }

Status ReadMig(const Json& j, Card& card) {
  for (const Json& entry : j.Items()) {
    MigDevice d;
    d.uuid = entry.At("uuid").Str();
    d.profile = entry.At("profile").Str();
    d.gpu_instance = Int(entry.At("gi"));
    d.compute_instance = Int(entry.At("ci"));
    d.start = Int(entry.At("start"));
    if (d.uuid.empty() || card.model->FindMigProfile(d.profile) == nullptr) {
      return Fail(
          BadRequest("inventory: card " + card.uuid + " has a MIG device of unknown profile"));
    }
    card.mig.push_back(std::move(d));
  }
  return {};
}

Status ReadProcesses(const Json& j, Card& card) {
  if (j.Items().size() > kMaxProcessesPerCard) {
    return Fail(BadRequest("inventory: too many processes on card " + card.uuid));
  }
  for (const Json& entry : j.Items()) {
    card.processes.push_back({.pid = entry.At("pid").Int(),
                              .name = entry.At("name").Str(),
                              .memory_mib = Int(entry.At("memory_mib")),
                              .gpu_instance = Int(entry.At("gi"), -1),
                              .compute_instance = Int(entry.At("ci"), -1)});
  }
  return {};
}

Result<Card> ReadCard(const Json& j, int index) {
  Card card;
  ASSIGN_OR_RETURN(card.model, FindModel(j.At("model").Str()));
  card.index = index;
  card.minor = Int(j.At("minor"));
  card.uuid = j.At("uuid").Str();
  card.bus_id = j.At("bus_id").Str();
  card.serial = j.At("serial").Str();
  card.product = j.At("product").Str(card.model->product);
  card.memory_mib = Int(j.At("memory_mib"), card.model->memory_mib);
  card.numa_node = Int(j.At("numa"), -1);
  card.cpus = j.At("cpus").Str();
  card.slot = Int(j.At("slot"));
  card.allocation = j.At("dra").Bool() ? Allocation::kDra : Allocation::kPlugin;
  card.mig_enabled = j.At("mig_enabled").Bool();
  card.healthy = j.At("unhealthy").IsNull();
  card.unhealthy_reason = j.At("unhealthy").Str();
  card.last_xid = Int(j.At("xid"));
  card.lost = j.At("lost").Bool();
  card.ecc_enabled = j.At("ecc").Bool(true);
  card.ecc_corrected = j.At("ecc_corrected").Int();
  card.ecc_uncorrected = j.At("ecc_uncorrected").Int();
  card.gpu_util = Int(j.At("gpu_util"));
  card.memory_util = Int(j.At("memory_util"));
  card.memory_used_mib = Int(j.At("memory_used_mib"));
  if (card.uuid.empty() || card.bus_id.empty() || card.memory_mib <= 0 || card.slot < 0) {
    return Fail(BadRequest("inventory: card " + std::to_string(index) + " is incomplete"));
  }
  RETURN_IF_ERROR(ReadMig(j.At("mig"), card));
  RETURN_IF_ERROR(ReadProcesses(j.At("processes"), card));
  return card;
}

}  // namespace

std::string Serialise(const Inventory& inventory) {
  JsonWriter w;
  w.BeginObject().Key("format").Int(kFormat).Key("simulated").Bool(true);
  w.Key("cluster").Str(inventory.cluster).Key("node").Str(inventory.node);
  w.Key("machine").Str(inventory.machine);
  w.Key("driver").Str(inventory.driver_version).Key("cuda").Str(inventory.cuda_version);
  if (!inventory.fabric_uuid.empty()) {
    w.Key("fabric").Str(inventory.fabric_uuid).Key("clique").Int(inventory.fabric_clique);
  }
  w.Key("cards").BeginArray();
  for (const Card& card : inventory.cards) WriteCard(w, card);
  w.EndArray().EndObject();
  return w.Take();
}

Result<Inventory> ParseInventory(std::string_view json) {
  ASSIGN_OR_RETURN(const Json doc, Json::Parse(json));
  if (doc.At("format").Int() != kFormat) {
    return Fail(BadRequest("inventory: not a text of format " + std::to_string(kFormat)));
  }
  Inventory out;
  out.cluster = doc.At("cluster").Str();
  out.node = doc.At("node").Str();
  out.machine = doc.At("machine").Str();
  out.driver_version = doc.At("driver").Str();
  out.cuda_version = doc.At("cuda").Str();
  out.fabric_uuid = doc.At("fabric").Str();
  out.fabric_clique = Int(doc.At("clique"));
  const std::vector<Json>& cards = doc.At("cards").Items();
  if (cards.size() > kMaxCards) return Fail(BadRequest("inventory: too many cards"));
  for (const Json& entry : cards) {
    ASSIGN_OR_RETURN(Card card, ReadCard(entry, static_cast<int>(out.cards.size())));
    out.cards.push_back(std::move(card));
  }
  return out;
}

}  // namespace sextant::gpu
