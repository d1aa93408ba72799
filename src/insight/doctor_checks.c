/* The checks, one table. What a check finds are figures and names; its words stand in the table, so
 * that the command, the JSON and docs/doctor.md say the same. */
#include "fleet/intake.h"
#include "insight/doctor_tests.h"

#define LABELS_OF_KSM                                                                              \
    "--metric-labels-allowlist=nodes=[*],pods=[team,app.kubernetes.io/name,"                       \
    "app.kubernetes.io/part-of]"
#define EXPORTER_CSV "in dcgm-exporter's metrics CSV (its ConfigMap, -f FILE): "

const struct doctor_check doctor_checks[] = {
    {"partial", DOCTOR_ERROR, "an answer of a source was cut or failed",
     "the hours that it is about lack GPUs, pods or samples; what lacks samples is unobserved",
     "mend what the source says, then book these hours again with --rebook", "faults", test_notes,
     0, NOTE_PARTIAL},
    {"not-recorded", DOCTOR_ERROR, "hours of the window are not in the ledger",
     "they count nowhere: totals and shares are of the other hours",
     "gputally collect --db FILE --prometheus URL --window WINDOW reads them, if the server keeps "
     "them still",
     "hours", test_recorded, 0, 0},
    {"unpriced", DOCTOR_ERROR, "GPU time has no known price",
     "its hours count and its money is 0, so totals are too low",
     "--prices FILE with a line instance_type,usd_per_hour for each of them (docs/prices.md)", NULL,
     test_unpriced, FLAG_UNPRICED, 0},
    {"unseen", DOCTOR_ERROR, "GPUs of nodes send no metrics at all",
     "their cost is unobserved: not known, never idle",
     "run dcgm-exporter there: its DaemonSet must tolerate the node's taints (tolerations: "
     "[{operator: Exists}]) and match its labels; kubectl get pods -A -o wide | grep dcgm says "
     "where it runs",
     NULL, test_flags, FLAG_UNSEEN, 0},
    {"silent", DOCTOR_WARNING, "GPUs that send metrics fell silent for a time",
     "that time is unobserved: not known, never idle",
     "up{job=~\".*dcgm.*\"} == 0 says when; kubectl logs of the exporter says why (restarts, an "
     "XID, scrape_timeout too short)",
     NULL, test_silent, 0, 0},
    {"frozen", DOCTOR_WARNING, "exporters served the same text again and again",
     "that time is unobserved: an old text says nothing of now",
     "the exporter's collection hangs: restart it (dcgm-exporter up to 3.6.1 does so; later ones "
     "answer 500), and look for XIDs and a hung nv-hostengine",
     "seconds", test_notes, 0, NOTE_FROZEN},
    {"down", DOCTOR_WARNING, "exporters do not answer now",
     "their GPUs are unobserved while it lasts: not known, never idle",
     "kubectl logs of the exporter's pod; from 4.8.3 on one NaN or duplicate makes it answer 500 "
     "to "
     "the whole scrape: restart it, and look at its last error",
     "targets", test_said, 0, 0},
    {"clock", DOCTOR_WARNING, "clocks differ",
     "Kubernetes' times and samples do not fit together: pods seem to hold GPUs before or after "
     "they do, and the newest hour is cut wrongly",
     "chrony or systemd-timesyncd on the machines that are named", "clocks", test_said, 0, 0},
    {"no-activity", DOCTOR_WARNING, "GPUs send metrics, but none of their activity",
     "their time is unobserved: not known, never idle",
     EXPORTER_CSV "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Ratio of time the graphics engine is "
                  "active. (MIG needs it: GPU_UTIL says nothing there); profiling needs "
                  "securityContext capabilities SYS_ADMIN",
     NULL, test_no_activity, 0, 0},
    {"sm-active", DOCTOR_WARNING, "SM_ACTIVE is not exported",
     "used money rests on GPU_UTIL or engine activity, which call a GPU busy when one kernel "
     "runs: used is too high, slack too low",
     EXPORTER_CSV "DCGM_FI_PROF_SM_ACTIVE, gauge, The ratio of cycles an SM has at least 1 warp "
                  "assigned.",
     NULL, test_much_flags, FLAG_U_UTIL | FLAG_U_ENGINE, 0},
    {"gpu-util", DOCTOR_INFO, "GPU_UTIL is not exported",
     "engine or SM activity says in its place whether anything ran; the idle scan's GPU_UTIL "
     "stays unchecked on whole GPUs",
     EXPORTER_CSV "DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).", NULL, test_util, 0, 0},
    {"stuck-counter", DOCTOR_WARNING, "profiling metrics say 0 while GPU_UTIL does not",
     "they are ignored there, and GPU_UTIL is taken: used is too high",
     "another profiler holds the counters, or they hang: dcgmi profile --resume on the node, or "
     "restart dcgm-exporter",
     NULL, test_flags, FLAG_STUCK_COUNTER, 0},
    {"unit-guess", DOCTOR_WARNING, "the unit of GPU_UTIL was guessed from its values",
     "if the guess is wrong, activity is 100 times too high or too low",
     "one version of dcgm-exporter on all nodes, from 4.9 on ratios; no rules that rescale "
     "metrics under their old name",
     NULL, test_flags, FLAG_UNIT_GUESS, 0},
    {"rejected", DOCTOR_WARNING, "values were not believed",
     "they count as not sent: their time may be unobserved",
     "blanks and values out of range come from the driver: nvidia-smi -q on the node; lines that "
     "cannot be read from whoever wrote the file",
     "values", test_notes, 0, NOTE_REJECTED},
    {"step", DOCTOR_INFO, "samples stand alone, further apart than --gap",
     "each covers one --step, and the time between is unobserved",
     "scrape more often (scrape_interval: 30s), or widen --gap to the interval", NULL,
     test_flags_beyond_edges, FLAG_STEP, 0},
    {"by-count", DOCTOR_WARNING, "no label says which GPU a pod has",
     "GPUs are laid on pods by count: right in sum on a node, a guess between its pods",
     "dcgm-exporter with DCGM_EXPORTER_KUBERNETES=true and /var/lib/kubelet/pod-resources "
     "mounted; honorLabels: true (or keep exported_pod) in the scrape; with the resource "
     "nvidia.com/gpu.shared also NVIDIA_RESOURCE_NAMES",
     NULL, test_much_flags, FLAG_BY_COUNT, 0},
    {"kept-device", DOCTOR_INFO, "labels of pods went missing for a time",
     "the pod is taken to keep the GPU that it had while it runs",
     "the exporter lost the kubelet's answer (kubectl logs: pod-resources timeout): restart it; "
     "from 3.4.2 on it waits longer",
     NULL, test_flags_beyond_edges, FLAG_KEPT_DEVICE, 0},
    {"unattributed", DOCTOR_WARNING, "GPUs were at work while no pod held them",
     "their cost is unattributed: in no team",
     "processes outside Kubernetes, or pods that see GPUs which they did not ask for: "
     "NVIDIA_VISIBLE_DEVICES without a resource request (device-plugin "
     "accept-nvidia-visible-devices-envvar-when-unprivileged=false)",
     NULL, test_unattributed, 0, 0},
    {"shared", DOCTOR_WARNING, "pods share GPUs, and no metric tells them apart",
     "the whole card's activity is divided by its holders: what each used is an estimate",
     "MIG instances instead of time-slicing; or dcgm-exporter from 4.8.2 on with "
     "KUBERNETES_VIRTUAL_GPUS=true and hostPID, which tells GPU_UTIL by process",
     NULL, test_flags, FLAG_SHARED_ESTIMATE, 0},
    {"late-labels", DOCTOR_WARNING, "telemetry named pods that were finished",
     "that time is booked on nobody or on who holds the GPU now",
     "dcgm-exporter reads the kubelet's list, which keeps finished pods: update it and kubelet "
     "to a version that drops them, or set ttlSecondsAfterFinished on Jobs",
     "seconds", test_notes, 0, NOTE_LATE_LABELS},
    {"unplaced", DOCTOR_INFO, "serving counters counted where no GPU was held",
     "their tokens and requests are in no row: unit costs are too high",
     "give the serving metrics the labels namespace and pod of the pod that holds the GPU",
     "counted", test_notes, 0, NOTE_UNPLACED},
    {"guessed", DOCTOR_INFO, "guesses were made from what the sources sent",
     "what they are about is said beside", "see the checks unit-guess and shared", "times",
     test_notes, 0, NOTE_GUESS},
    {"no-kube", DOCTOR_WARNING, "no record of Kubernetes knows these nodes",
     "they are up while their GPUs send samples: start-up, silence and nodes without an exporter "
     "are not seen, and labels of pods and nodes are missing",
     "let the same server scrape kube-state-metrics, started with " LABELS_OF_KSM
     "; or give --kube-json FILE",
     NULL, test_flags, FLAG_UP_SAMPLES, 0},
    {"no-type", DOCTOR_INFO, "nodes say no instance type",
     "no price fits them by type, and pool, region and capacity type may lack too",
     "kube-state-metrics with " LABELS_OF_KSM
     "; on bare metal label the nodes node.kubernetes.io/instance-type and price that name",
     NULL, test_no_type, 0, 0},
    {"node-lives", DOCTOR_INFO, "nodes of one name changed their instance type",
     "each hour has the type of its time; by node the machines are added up",
     "nothing to mend where machines were replaced; else give nodes names of their own", "nodes",
     test_lives, 0, 0},
    {"default-price", DOCTOR_WARNING, "prices are defaults of the GPU model",
     "dollars are an estimate; shares inside one model are right",
     "--prices FILE with a line instance_type,usd_per_hour (docs/prices.md)", NULL, test_flags,
     FLAG_DEFAULT_PRICE, 0},
    {"spot-as-on-demand", DOCTOR_WARNING, "spot nodes are priced as on-demand",
     "their dollars are too high, mostly by half or more",
     "--prices FILE with a line instance_type,capacity_type,usd_per_hour where capacity_type is "
     "spot",
     NULL, test_flags, FLAG_SPOT_AS_ON_DEMAND, 0},
    {"reserved-as-on-demand", DOCTOR_WARNING, "reserved nodes are priced as on-demand",
     "their dollars are too high by the discount",
     "--prices FILE with a line instance_type,capacity_type,usd_per_hour where capacity_type is "
     "reserved",
     NULL, test_flags, FLAG_RESERVED_AS_ON_DEMAND, 0},
    {"catalogue-derived", DOCTOR_INFO, "prices are derived from other prices of the catalogue",
     "dollars are an estimate", "--prices FILE with the price of the instance type", NULL,
     test_flags, FLAG_CATALOGUE_DERIVED, 0},
    {"list-prices", DOCTOR_INFO, "prices are list prices of the built-in catalogue",
     "dollars are without your discounts", "--prices FILE, or prices: in --config FILE", NULL,
     test_list_prices, 0, 0},
    {"price-files", DOCTOR_WARNING, "lines of price files were left out",
     "what they price takes another price, or none", "mend the lines that are named", "lines",
     test_price_files, 0, 0},
    {"settings", DOCTOR_WARNING, "hours were booked with other prices, owners or settings",
     "figures of the window are not all made alike", "book them again with --rebook", NULL,
     test_settings, 0, 0},
    {"ignore", DOCTOR_WARNING, "annotations gputally.io/ignore cannot be read",
     "they are not obeyed: the findings count",
     "write until=DATE, reason=TEXT and, for some rules only, rule=RULE (docs/configuration.md)",
     "annotations", test_ignore, 0, 0},
    {"unowned", DOCTOR_WARNING, "no owner rule matches these pods",
     "their money is on the team unowned",
     "a rule for their namespaces in --owners FILE (docs/owners.md), or a label team on the pods "
     "or the namespace, which kube-state-metrics must let through: " LABELS_OF_KSM
     ",namespaces=[team]",
     NULL, test_unowned, 0, 0},
    {"owner-default", DOCTOR_INFO, "teams are the names of namespaces",
     "no rule and no label names an owner: several namespaces of one team are not added up",
     "--owners FILE (docs/owners.md), or a label team let through with " LABELS_OF_KSM, NULL,
     test_flags, FLAG_OWNER_DEFAULT, 0},
    {"history", DOCTOR_INFO, "the ledger has less than 7 days",
     "gputally idle says 'not enough data', and months are projected from little",
     "gputally collect --db FILE --prometheus URL --window 7d, as far back as the server keeps",
     "hours", test_history, 0, 0},
    {"hidden-labels", DOCTOR_WARNING, "kube-state-metrics hides labels",
     "types, pools, regions and teams that these labels say are not known",
     "start kube-state-metrics with the flag that is named (helm: metricLabelsAllowlist)", "lists",
     test_said, 0, 0},
    {"oversampled", DOCTOR_INFO, "GPUs are scraped more often than they are measured",
     "none: values are weighted by time; the samples cost what they cost",
     "scrape_interval at the exporter's interval (-c, DCGM_EXPORTER_INTERVAL; 30 s)", "jobs",
     test_said, 0, 0},
    {"series", DOCTOR_INFO, "what GPU metrics cost to keep",
     "none; services that charge by sample charge for these",
     "drop what nobody reads by metric_relabel_configs, or in dcgm-exporter's metrics CSV", "jobs",
     test_said, 0, 0},
    {"memory", DOCTOR_INFO, "GPU memory is not exported",
     "the idle scan's memory stays unchecked; sizes cannot be judged",
     EXPORTER_CSV "DCGM_FI_DEV_FB_USED, gauge, Framebuffer memory used (in MiB). and "
                  "DCGM_FI_DEV_FB_FREE",
     NULL, test_memory, 0, 0},
    {"power", DOCTOR_INFO, "power is not exported",
     "the idle scan's power stays unchecked; energy is absent",
     EXPORTER_CSV "DCGM_FI_DEV_POWER_USAGE, gauge, Power draw (in W).", NULL, test_power, 0, 0},
    {"power-limit", DOCTOR_INFO, "the power limit is not exported",
     "the idle scan takes the limit of the configuration or of the catalogue's model",
     EXPORTER_CSV "DCGM_FI_DEV_POWER_MGMT_LIMIT, gauge, Power limit (in W).", NULL, test_limit, 0,
     0},
    {"energy-power", DOCTOR_INFO, "energy is power times time",
     "kWh are less exact than the counter's",
     EXPORTER_CSV "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Total energy consumption since "
                  "boot (in mJ).",
     NULL, test_flags_beyond_edges, FLAG_ENERGY_POWER, 0},
};
const size_t doctor_checks_n = sizeof doctor_checks / sizeof *doctor_checks;
