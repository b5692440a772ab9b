#include "base/check.h"
#include "base/fuzz.h"
#include "lab/kind_config.h"
#include "lab/pki.h"
#include "lab/state.h"
#include "lab/topology.h"

namespace sextant::lab {

FUZZ_TARGET(kind_file) {
  const Result<KindFile> file = ReadKindFile(input, "kind.yaml");
  if (!file) {
    CHECK(!file.error().message.empty());
    return;
  }
  CHECK(!file->config.nodes.empty());
  // What a lab keeps of it comes back the same.
  LabRecord record;
  record.config = file->config;
  const std::string text = SerialiseRecord(record);
  const Result<LabRecord> again = ParseRecord(text);
  CHECK(again.has_value());
  CHECK(SerialiseRecord(*again) == text);
}

FUZZ_TARGET(topology) { (void)ParseTopology(input); }

FUZZ_TARGET(lab_record) {
  if (const Result<LabRecord> record = ParseRecord(input)) {
    const std::string text = SerialiseRecord(*record);
    CHECK(SerialiseRecord(ParseRecord(text).value()) == text);
  }
  (void)ParsePki(input);
}

}  // namespace sextant::lab
