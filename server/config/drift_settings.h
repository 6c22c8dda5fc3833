// The `drift` map of a limit: when what was received and what was admitted count as drifting apart.
#ifndef EBBGATE_SERVER_CONFIG_DRIFT_SETTINGS_H_
#define EBBGATE_SERVER_CONFIG_DRIFT_SETTINGS_H_

#include "server/config/yaml_fields.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

// `drift: {ratio: 1.15, window: 10m, minimum: 100}` of the limit whose fields these are; what it leaves out keeps its
// default. Faults are added to those of the fields.
void ReadDriftSettings(const YamlFields& limit, DriftSettings& drift);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_DRIFT_SETTINGS_H_
