// nvidia-smi as a pure function: what it prints for the cards it can see.
//
//   SmiResult r = RunSmi(visible, {"--query-gpu=name,uuid", "--format=csv"}, now);
//
// Layouts, fields, messages and exit codes are those of driver 590.48.01, taken from captured
// outputs (utkuozdemir/nvidia_gpu_exporter internal/captures, influxdata/telegraf nvidia_smi
// testdata). Served: the table, -L, -q (text, -x, -d), --query-gpu, --query-compute-apps and its
// kin, topo -m, nvlink -s, mig -lgip/-lgipp/-lgi, -i, -l, -f, -h, --version. Other options of the
// real program are refused with a sentence that says so.
//
// It never passes for real (DESIGN, law 9): the table ends with a line that says so, `-q` and
// `--version` carry a line of their own, the XML a comment. CSV and -L, which programs read word by
// word, carry nothing; their UUIDs are version 5, which no real card's is.
//
// Exit codes as nvidia-smi(1): 0 fine, 2 wrong argument, 3 not available on this card, 6 no card
// found, 15 a card fell off the bus.
#pragma once

#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "gpu/inventory.h"

namespace sextant::gpu {

struct SmiTime {
  std::tm local{};
  int milliseconds = 0;
};

struct SmiResult {
  std::string out;
  int code = 0;
  std::string file;  // -f: where `out` goes instead of standard output
  int loop_ms = 0;   // -l, -lms: the caller runs it again after this time; 0: once
};

// `args` without the program's name.
SmiResult RunSmi(const Inventory& visible, std::span<const std::string> args, const SmiTime& now);

}  // namespace sextant::gpu
