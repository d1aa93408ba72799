/* The rules that hold where nobody configured any: what people commonly call the owner's label, and
 * how a workload's kind, name and labels give its type away. One table each; docs/owners.md shows
 * them. In order; the first that matches decides. */
#ifndef GPUTALLY_FLEET_OWNERS_DEFAULT_H
#define GPUTALLY_FLEET_OWNERS_DEFAULT_H

/* Labels that name a team. The pod's own goes before its namespace's. */
#define OWNER_LABELS                                                                               \
    "team", "owner", "squad", "cost-center", "cost_center", "costcenter", "cost-centre",           \
        "business-unit", "department"
/* Labels that name a product: only where neither the pod nor its namespace names a team. */
#define PRODUCT_LABELS "app.kubernetes.io/part-of", "product", "project"

/* Annotations and labels of a pod that name the person who works in it: JupyterHub, Coder, and what
 * people commonly write. An annotation goes before the label, in which JupyterHub escapes names. */
#define USER_LABELS                                                                                \
    "hub.jupyter.org/username", "com.coder.user.username", "username", "user", "user-name",        \
        "created-by"

/* X(TYPE, "kind", "namespace", "workload", "pod label", "its value"); NULL: whatever */
#define TYPE_TABLE(X)                                                                              \
    X(INTERACTIVE, "Notebook", NULL, NULL, NULL, NULL)                                             \
    X(INTERACTIVE, "Workspace", NULL, NULL, NULL, NULL)                                            \
    X(INTERACTIVE, NULL, NULL, NULL, "hub.jupyter.org/username", "*")                              \
    X(INTERACTIVE, NULL, NULL, NULL, "notebook-name", "*")                                         \
    X(INTERACTIVE, NULL, NULL, NULL, "component", "singleuser-server")                             \
    X(INTERACTIVE, NULL, NULL, "*jupyter*", NULL, NULL)                                            \
    X(INTERACTIVE, NULL, NULL, "*notebook*", NULL, NULL)                                           \
    X(INTERACTIVE, NULL, NULL, "code-server*", NULL, NULL)                                         \
    X(INTERACTIVE, NULL, NULL, "vscode*", NULL, NULL)                                              \
    X(INTERACTIVE, NULL, "jupyter*", NULL, NULL, NULL)                                             \
    X(INTERACTIVE, NULL, "jhub*", NULL, NULL, NULL)                                                \
    X(INTERACTIVE, NULL, "notebook*", NULL, NULL, NULL)                                            \
    X(TRAINING, "PyTorchJob", NULL, NULL, NULL, NULL)                                              \
    X(TRAINING, "MPIJob", NULL, NULL, NULL, NULL)                                                  \
    X(TRAINING, "TFJob", NULL, NULL, NULL, NULL)                                                   \
    X(TRAINING, "JAXJob", NULL, NULL, NULL, NULL)                                                  \
    X(TRAINING, "XGBoostJob", NULL, NULL, NULL, NULL)                                              \
    X(TRAINING, "PaddleJob", NULL, NULL, NULL, NULL)                                               \
    X(TRAINING, "TrainJob", NULL, NULL, NULL, NULL)                                                \
    X(TRAINING, NULL, NULL, NULL, "training.kubeflow.org/job-name", "*")                           \
    X(INFERENCE, "InferenceService", NULL, NULL, NULL, NULL)                                       \
    X(INFERENCE, "LLMInferenceService", NULL, NULL, NULL, NULL)                                    \
    X(INFERENCE, "InferenceGraph", NULL, NULL, NULL, NULL)                                         \
    X(INFERENCE, "RayService", NULL, NULL, NULL, NULL)                                             \
    X(INFERENCE, "SeldonDeployment", NULL, NULL, NULL, NULL)                                       \
    X(INFERENCE, "DynamoGraphDeployment", NULL, NULL, NULL, NULL)                                  \
    X(INFERENCE, NULL, NULL, NULL, "serving.kserve.io/inferenceservice", "*")                      \
    X(INFERENCE, NULL, NULL, "*inference*", NULL, NULL)                                            \
    X(INFERENCE, NULL, NULL, "*vllm*", NULL, NULL)                                                 \
    X(INFERENCE, NULL, NULL, "*sglang*", NULL, NULL)                                               \
    X(INFERENCE, NULL, NULL, "*triton*", NULL, NULL)                                               \
    X(INFERENCE, NULL, NULL, "*-tgi*", NULL, NULL)                                                 \
    X(INFERENCE, NULL, NULL, "tgi-*", NULL, NULL)                                                  \
    X(INFERENCE, NULL, NULL, "ollama*", NULL, NULL)                                                \
    X(INFERENCE, NULL, NULL, "*-predictor*", NULL, NULL)                                           \
    X(INFERENCE, NULL, NULL, "*-serving*", NULL, NULL)                                             \
    X(INFERENCE, "LeaderWorkerSet", NULL, NULL, NULL, NULL)                                        \
    X(TRAINING, "RayJob", NULL, NULL, NULL, NULL)                                                  \
    X(TRAINING, "JobSet", NULL, NULL, NULL, NULL)                                                  \
    X(TRAINING, "Job", NULL, NULL, NULL, NULL)                                                     \
    X(TRAINING, "CronJob", NULL, NULL, NULL, NULL)                                                 \
    X(TRAINING, "Workflow", NULL, NULL, NULL, NULL)                                                \
    X(TRAINING, NULL, NULL, "*train*", NULL, NULL)                                                 \
    X(TRAINING, NULL, NULL, "*finetune*", NULL, NULL)                                              \
    X(TRAINING, NULL, NULL, "*fine-tune*", NULL, NULL)

#endif
