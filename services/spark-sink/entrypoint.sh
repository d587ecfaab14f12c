#!/bin/bash
# What a container of the image runs: the sink or, in a pod that Spark or the Spark operator has made, what it asks for:
# the driver of a SparkApplication, or an executor. Their arguments and variables are those of Spark's own image.
set -euo pipefail

case "${1:-}" in
  driver)
    exec spark-submit --deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "${@:2}"
    ;;
  executor)
    home=$(python -c 'import pyspark; print(pyspark.__path__[0])')
    # SPARK_JAVA_OPT_0=…, SPARK_JAVA_OPT_1=…, in the order of their numbers
    readarray -t options < <(env | grep '^SPARK_JAVA_OPT_' | sort -t_ -k4 -n | cut -d= -f2-)
    exec java "${options[@]}" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CONF_DIR:-$home/conf}:${SPARK_CLASSPATH:-}:$home/jars/*" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" \
      --executor-id "$SPARK_EXECUTOR_ID" \
      --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" \
      --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
      --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  *)
    exec databus-spark-sink "$@"
    ;;
esac
