"""All bytes of topics, in which a test looks for what must not be there."""

from base64 import b64encode

from confluent_kafka import Consumer, TopicPartition

from cdc.sandbox.server.kafka import Kafka

__all__ = ["forms", "messages", "topics_of"]


def messages(kafka: Kafka, *topics: str) -> list[bytes]:
    """All that is in the topics: keys, values and headers."""
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "grep", "auto.offset.reset": "earliest"}
    )
    known = consumer.list_topics(timeout=30).topics
    found: list[bytes] = []
    for topic in topics:
        for number in known[topic].partitions:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)
            consumer.assign([TopicPartition(topic, number, 0)])
            while consumer.position([TopicPartition(topic, number)])[0].offset < end:
                message = consumer.poll(10)
                if message is None:
                    break
                found += [message.key() or b"", message.value() or b"", repr(message.headers()).encode()]
    consumer.close()
    return found


def forms(secret: str) -> list[bytes]:
    """The text, and what it is within any base64."""
    encoded = [b64encode(b"_" * before + secret.encode()) for before in range(3)]
    return [secret.encode(), *(each[4 * (before > 0) : -4] for before, each in enumerate(encoded))]


def topics_of(kafka: Kafka, prefix: str) -> list[str]:
    """The topics whose names begin with ``prefix``."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "grep"})
    names = [name for name in consumer.list_topics(timeout=30).topics if name.startswith(prefix)]
    consumer.close()
    return sorted(names)
